// Which squares a piece attacks. Steppers come from small compile-time tables; sliders from one
// table indexed by the occupied squares that matter, found with PEXT where the processor does it
// fast and with a multiplication ("magic") elsewhere. attacks_test.cc compares both with a walk.
#pragma once

#include <array>
#include <cstddef>

#include "games/chess/bitboard.h"

#if defined(__BMI2__) && !defined(__znver1__) && !defined(__znver2__) && !defined(KIBITZ_SLOW_PEXT)
#define KIBITZ_FAST_PEXT 1
#include <immintrin.h>
#else
#define KIBITZ_FAST_PEXT 0
#endif

namespace kibitz::chess {

namespace internal {

template <typename Function>
constexpr std::array<Bitboard, 64> TableOf(Function attacks_of) {
  std::array<Bitboard, 64> table{};
  for (int i = 0; i < 64; ++i) table[static_cast<size_t>(i)] = attacks_of(uint64_t{1} << i);
  return table;
}

constexpr Bitboard KingSteps(Bitboard b) {
  const Bitboard row = b | East(b) | West(b);
  return (row | North(row) | South(row)) & ~b;
}
constexpr Bitboard KnightSteps(Bitboard b) {
  const Bitboard one = East(b) | West(b);
  const Bitboard two = East(East(b)) | West(West(b));
  return North(North(one)) | South(South(one)) | North(two) | South(two);
}

inline constexpr auto kKingTable = TableOf(KingSteps);
inline constexpr auto kKnightTable = TableOf(KnightSteps);

// What indexes one square's part of a slider table.
struct SliderSquare {
  Bitboard mask = 0;    // Squares whose occupation changes the attack.
  uint64_t magic = 0;   // Multiplier that maps each occupation to an index of its own.
  uint32_t offset = 0;  // Where this square's part starts.
  uint32_t shift = 0;   // 64 - number of mask bits.
};

struct MagicIndex {
  static size_t Of(const SliderSquare& s, Bitboard occupied) {
    return s.offset + (((occupied & s.mask) * s.magic) >> s.shift);
  }
};

#if KIBITZ_FAST_PEXT
struct PextIndex {
  static size_t Of(const SliderSquare& s, Bitboard occupied) {
    return s.offset + _pext_u64(occupied, s.mask);
  }
};
using FastIndex = PextIndex;
#else
using FastIndex = MagicIndex;
#endif

template <typename Index, size_t kEntries>
class SliderTable {
 public:
  enum class Lines { kRook, kBishop };
  explicit SliderTable(Lines lines);

  Bitboard Attacks(Square from, Bitboard occupied) const {
    return attacks_[Index::Of(squares_[static_cast<size_t>(from.index())], occupied)];
  }

 private:
  std::array<SliderSquare, 64> squares_;
  std::array<Bitboard, kEntries> attacks_;
};

template <typename Index>
using RookTable = SliderTable<Index, 102400>;
template <typename Index>
using BishopTable = SliderTable<Index, 5248>;

extern const RookTable<FastIndex> kRooks;
extern const BishopTable<FastIndex> kBishops;
extern const std::array<std::array<Bitboard, 64>, 64> kBetween;

}  // namespace internal

inline Bitboard KingAttacks(Square from) {
  return internal::kKingTable[static_cast<size_t>(from.index())];
}
inline Bitboard KnightAttacks(Square from) {
  return internal::kKnightTable[static_cast<size_t>(from.index())];
}
inline Bitboard RookAttacks(Square from, Bitboard occupied) {
  return internal::kRooks.Attacks(from, occupied);
}
inline Bitboard BishopAttacks(Square from, Bitboard occupied) {
  return internal::kBishops.Attacks(from, occupied);
}

// All squares that pawns of this colour on these squares attack.
constexpr Bitboard PawnAttacks(Color color, Bitboard pawns) {
  const Bitboard ahead = color == Color::kWhite ? North(pawns) : South(pawns);
  return East(ahead) | West(ahead);
}

// The squares strictly between two squares on one line, plus `to` itself; only `to` when they
// share no line. This is the set that ends a check by `to` on a king at `from`.
inline Bitboard Through(Square from, Square to) {
  return internal::kBetween[static_cast<size_t>(from.index())][static_cast<size_t>(to.index())];
}

// The plain version: walks each line until it meets a piece.
Bitboard WalkRookAttacks(Square from, Bitboard occupied);
Bitboard WalkBishopAttacks(Square from, Bitboard occupied);

// Name of the slider index this build uses: "pext" or "magic".
const char* SliderIndexName();

}  // namespace kibitz::chess
