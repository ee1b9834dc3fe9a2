// Positions as input planes. Planes: 13 boards of 8 by 8 zeros and ones, White's pawn, knight,
// bishop, rook, queen, king, Black's, then the en passant square; [plane][rank][file], rank 1
// first. Meta: the side to move (1 White, -1 Black) and the castling rights K, Q, k, q.
//
// With "flip" a network sees the board from the side to move: when Black moves, colours are swapped
// and ranks mirrored, and the input does not say who moves.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "students/policy/data/packed_position.h"

namespace kibitz::policy {

inline constexpr int kPlanes = 13;
inline constexpr int kPlaneBytes = kPlanes * 64;
inline constexpr int kMeta = 5;
// Inputs of a network without convolutions: planes, then meta.
inline constexpr int kFlatInputs = kPlaneBytes + kMeta;

using PlaneBytes = std::array<uint8_t, kPlaneBytes>;
using MetaBytes = std::array<int8_t, kMeta>;

PlaneBytes PlanesOf(const PackedPosition& position);
MetaBytes MetaOf(const PackedPosition& position);
// The inverse. Bad when the planes are no position: two pieces on a square, values other than 0 and
// 1, not one king each, castling rights without their rook.
Result<PackedPosition> FromPlanes(std::span<const uint8_t, kPlaneBytes> planes,
                                  std::span<const int8_t, kMeta> meta);

// Channels of a square: the planes, and meta broadcast to every square; with flip only its four
// castling rights.
constexpr int ChannelsOf(bool flip) { return kPlanes + (flip ? 4 : kMeta); }

// Square by square from a1, channels side by side: 64 * ChannelsOf(flip) floats.
void WriteChannels(const PackedPosition& position, bool flip, float* out);
// Plane by plane, then meta: kFlatInputs floats.
void WriteFlat(const PackedPosition& position, float* out);

}  // namespace kibitz::policy
