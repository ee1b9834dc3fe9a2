// Positions as input planes. Planes: 13 boards of 8 by 8 zeros and ones, White's pawn, knight,
// bishop, rook, queen, king, Black's, then the en passant square; [plane][rank][file], rank 1
// first. Meta: the side to move (1 White, -1 Black) and the castling rights K, Q, k, q.
//
// With "flip" a network sees the board from the side to move: when Black moves, colours are swapped
// and ranks mirrored, and the input does not say who moves. Attack planes
// (chess/attack_planes.h) may follow: they are always from the side to move.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "games/chess/attack_planes.h"
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
chess::AttackPlanes AttackPlanesOf(const PackedPosition& position);
// The inverse of planes and meta. Bad when the planes are no position: two pieces on a square,
// values other than 0 and 1, not one king each, castling rights without their rook.
Result<PackedPosition> FromPlanes(std::span<const uint8_t, kPlaneBytes> planes,
                                  std::span<const int8_t, kMeta> meta);

// The input of a network.
struct InputForm {
  // Plane by plane, then meta: kFlatInputs numbers. Else square by square from a1, with the
  // channels of a square side by side.
  bool flat = false;
  bool flip = false;     // From the side to move; not where flat.
  bool attacks = false;  // Attack planes behind the others; needs flip.

  // Meta numbers of a square: with flip only the four castling rights.
  constexpr int metas() const { return flip ? 4 : kMeta; }
  // Of a square: planes, meta broadcast to every square, attack planes.
  constexpr int channels() const {
    return kPlanes + metas() + (attacks ? chess::kAttackPlanes : 0);
  }
  // Numbers of a position.
  constexpr int size() const { return flat ? kFlatInputs : 64 * channels(); }
};

// form.size() floats.
void WriteInputs(const PackedPosition& position, const InputForm& form, float* out);

}  // namespace kibitz::policy
