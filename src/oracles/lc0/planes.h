// The input of lc0's networks: 112 planes over the squares as the side to move sees them.
//
// Eight boards of 13 planes, newest first (own pawns, knights, bishops, rooks, queens, king,
// theirs, and all ones where the position occurred before), then castling rights, the side to move,
// the half-move clock, zeros and ones. Squares are seen from the side to move of the newest board.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "oracles/search/evaluator.h"

namespace kibitz::oracles {

inline constexpr int64_t kLc0Planes = 112;

// A plane is a set of squares that hold its value, the others 0. Bit 0 = a1 for White, a8 for
// Black.
struct Lc0Planes {
  std::array<uint64_t, kLc0Planes> squares{};
  std::array<float, kLc0Planes> values{};
};

// Boards before the root of the game are left empty where it is the starting position; else they
// are copies of the root, with a pawn that just made a double step moved back.
Lc0Planes MakeLc0Planes(const Question& question);

}  // namespace kibitz::oracles
