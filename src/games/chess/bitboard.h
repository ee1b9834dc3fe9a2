// A set of squares as 64 bits, bit i = square i, and the few operations on it.
#pragma once

#include <bit>
#include <cstdint>

#include "games/chess/types.h"

namespace kibitz::chess {

using Bitboard = uint64_t;

inline constexpr Bitboard kFileA = 0x0101010101010101;
inline constexpr Bitboard kFileH = kFileA << 7;
inline constexpr Bitboard kRank1 = 0xff;
inline constexpr Bitboard kLightSquares = 0x55aa55aa55aa55aa;

constexpr Bitboard RankOf(int rank) { return kRank1 << (8 * rank); }
constexpr Bitboard FileOf(int file) { return kFileA << file; }
constexpr Bitboard BackRank(Color color) { return RankOf(color == Color::kWhite ? 0 : 7); }

inline int PopCount(Bitboard set) { return std::popcount(set); }
inline Square First(Bitboard set) { return Square(std::countr_zero(set)); }

// Removes the first square of the set and returns it.
inline Square TakeFirst(Bitboard& set) {
  const Square square = First(set);
  set &= set - 1;
  return square;
}

// One step for every square of the set; squares that would leave the board vanish.
constexpr Bitboard North(Bitboard set) { return set << 8; }
constexpr Bitboard South(Bitboard set) { return set >> 8; }
constexpr Bitboard East(Bitboard set) { return (set & ~kFileH) << 1; }
constexpr Bitboard West(Bitboard set) { return (set & ~kFileA) >> 1; }

}  // namespace kibitz::chess
