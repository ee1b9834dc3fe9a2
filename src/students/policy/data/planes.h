// Positions as networks see them. Planes: 13 boards of 8 by 8 zeros and ones, White's pawn, knight,
// bishop, rook, queen, king, Black's, then the en passant square; [plane][rank][file], rank 1
// first. Meta: the side to move (1 White, -1 Black) and the castling rights K, Q, k, q.
//
// A network may see the board from the side to move instead ("flip"): for Black the colours change
// places and the ranks are mirrored. It is then not told who moves.
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
// Numbers that a network without convolutions takes: planes, then meta.
inline constexpr int kFlatInputs = kPlaneBytes + kMeta;

using PlaneBytes = std::array<uint8_t, kPlaneBytes>;
using MetaBytes = std::array<int8_t, kMeta>;

PlaneBytes PlanesOf(const PackedPosition& position);
MetaBytes MetaOf(const PackedPosition& position);
// Back again. Bad when they are no position: a square with two pieces, other numbers than 0 and 1,
// not one king each, rights without their rook.
Result<PackedPosition> FromPlanes(std::span<const uint8_t, kPlaneBytes> planes,
                                  std::span<const int8_t, kMeta> meta);

// Channels of a square: the planes and, on every square alike, meta; flipped: the four rights
// alone.
constexpr int ChannelsOf(bool flip) { return kPlanes + (flip ? 4 : kMeta); }

// Square by square from a1, channels side by side: 64 * ChannelsOf(flip) floats.
void WriteChannels(const PackedPosition& position, bool flip, float* out);
// Plane by plane, then meta: kFlatInputs floats.
void WriteFlat(const PackedPosition& position, float* out);

}  // namespace kibitz::policy
