#include "games/chess/attacks.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/random.h"

namespace kibitz::chess {
namespace {

// Every occupation of every mask, for an index of one kind.
template <typename Index>
void CompareWithWalk() {
  using internal::BishopTable;
  using internal::RookTable;
  const auto rooks = std::make_unique<RookTable<Index>>(RookTable<Index>::Lines::kRook);
  const auto bishops = std::make_unique<BishopTable<Index>>(BishopTable<Index>::Lines::kBishop);
  for (int i = 0; i < 64; ++i) {
    const Square from(i);
    for (const bool rook : {true, false}) {
      const Bitboard lines = rook ? WalkRookAttacks(from, 0) : WalkBishopAttacks(from, 0);
      Bitboard occupied = 0;
      do {
        const Bitboard fast =
            rook ? rooks->Attacks(from, occupied) : bishops->Attacks(from, occupied);
        const Bitboard plain =
            rook ? WalkRookAttacks(from, occupied) : WalkBishopAttacks(from, occupied);
        ASSERT_EQ(fast, plain) << from.Name() << " rook " << rook << " occupied " << occupied;
        occupied = (occupied - lines) & lines;
      } while (occupied != 0);
    }
  }
}

TEST(AttacksTest, MagicsAgreeWithWalk) { CompareWithWalk<internal::MagicIndex>(); }

TEST(AttacksTest, PextAgreesWithWalk) {
#if KIBITZ_FAST_PEXT
  CompareWithWalk<internal::PextIndex>();
#else
  GTEST_SKIP() << "built for a processor without fast PEXT";
#endif
}

TEST(AttacksTest, OtherPiecesDoNotMatter) {
  Rng rng({.seed = 1});
  for (int i = 0; i < 100000; ++i) {
    const Square from(static_cast<int>(rng.Below(64)));
    const Bitboard occupied = rng.Next() & rng.Next();
    ASSERT_EQ(RookAttacks(from, occupied), WalkRookAttacks(from, occupied));
    ASSERT_EQ(BishopAttacks(from, occupied), WalkBishopAttacks(from, occupied));
  }
}

TEST(AttacksTest, Steppers) {
  EXPECT_EQ(PopCount(KnightAttacks(Square::At(0, 0))), 2);
  EXPECT_EQ(PopCount(KnightAttacks(Square::At(4, 4))), 8);
  EXPECT_EQ(PopCount(KingAttacks(Square::At(7, 7))), 3);
  EXPECT_EQ(PopCount(KingAttacks(Square::At(4, 4))), 8);
  EXPECT_EQ(PawnAttacks(Color::kWhite, Square::At(0, 1).bit()), Square::At(1, 2).bit());
  EXPECT_EQ(PawnAttacks(Color::kBlack, Square::At(7, 6).bit()), Square::At(6, 5).bit());
}

TEST(AttacksTest, Through) {
  const Square a1 = Square::At(0, 0);
  EXPECT_EQ(Through(a1, Square::At(3, 3)),
            Square::At(1, 1).bit() | Square::At(2, 2).bit() | Square::At(3, 3).bit());
  EXPECT_EQ(Through(a1, Square::At(1, 2)), Square::At(1, 2).bit());
  EXPECT_EQ(Through(a1, a1), a1.bit());
}

}  // namespace
}  // namespace kibitz::chess
