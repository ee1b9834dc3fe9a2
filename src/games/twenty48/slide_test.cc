#include "games/twenty48/slide.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace kibitz::twenty48 {
namespace {

Board Row(int a, int b, int c, int d) {
  return Board().With(0, a).With(1, b).With(2, c).With(3, d);
}

struct Case {
  Board before;
  Board after;
  int points;
};

TEST(Slide, MergesEachTileOnceFromTheWall) {
  const std::vector<Case> cases = {
      {Row(1, 1, 1, 0), Row(2, 1, 0, 0), 4},       {Row(1, 1, 1, 1), Row(2, 2, 0, 0), 8},
      {Row(2, 1, 1, 0), Row(2, 2, 0, 0), 4},       {Row(0, 0, 0, 3), Row(3, 0, 0, 0), 0},
      {Row(3, 0, 3, 4), Row(4, 4, 0, 0), 16},      {Row(1, 2, 1, 2), Row(1, 2, 1, 2), 0},
      {Row(14, 14, 0, 1), Row(15, 1, 0, 0), 32768}};
  for (const Case& item : cases) {
    const Slid slid = Slide(item.before, Move::kLeft);
    EXPECT_EQ(slid.board, item.after);
    EXPECT_EQ(slid.points, item.points);
    EXPECT_EQ(slid.legal(item.before), item.before != item.after);
  }
  EXPECT_EQ(Slide(Row(1, 1, 1, 0), Move::kRight).board, Row(0, 0, 1, 2));
}

TEST(Slide, MakesTilesThatNoNibbleHolds) {
  const std::vector<Case> cases = {
      {Row(15, 15, 0, 0), Row(16, 0, 0, 0), 65536},
      {Row(15, 15, 15, 15), Row(16, 16, 0, 0), 131072},
      {Row(16, 15, 15, 0), Row(16, 16, 0, 0), 65536},  // Not 15 with 16, though nibbles agree.
      {Row(16, 15, 16, 15), Row(16, 15, 16, 15), 0},
      {Row(16, 16, 0, 1), Row(17, 1, 0, 0), 131072},
      {Row(0, 0, 16, 0), Row(16, 0, 0, 0), 0},
      {Row(0, 17, 16, 16), Row(17, 17, 0, 0), 131072}};
  for (const Case& item : cases) {
    for (const Slid& slid : {Slide(item.before, Move::kLeft), SlideAll(item.before)[2],
                             SlidePlain(item.before, Move::kLeft)}) {
      EXPECT_EQ(slid.board, item.after);
      EXPECT_EQ(slid.points, item.points);
    }
  }
}

// Boards of every kind: crowded or empty, few kinds of tiles or many, with tiles over a nibble.
Board RandomBoard(Rng& rng) {
  const uint64_t kinds = 2 + rng.Below(6);
  const int top = static_cast<int>(rng.Below(3) == 0 ? 17 : kinds + rng.Below(10));
  const double filled = rng.Uniform();
  Board board;
  for (int cell = 0; cell < kCells; ++cell) {
    if (rng.Uniform() > filled) continue;
    board = board.With(cell, std::max(1, top - static_cast<int>(rng.Below(kinds))));
  }
  return board;
}

TEST(Slide, TablesAgreeWithThePlainWay) {
  Rng rng({.seed = 1, .purpose = Purpose("slide test")});
  for (int i = 0; i < 1'000'000; ++i) {
    const Board board = RandomBoard(rng);
    const std::array<Slid, 4> all = SlideAll(board);
    unsigned legal = 0;
    for (Move move : kMoves) {
      const Slid plain = SlidePlain(board, move);
      const Slid fast = Slide(board, move);
      ASSERT_EQ(fast.board, plain.board);
      ASSERT_EQ(fast.points, plain.points);
      ASSERT_EQ(all[static_cast<size_t>(move)].board, plain.board);
      ASSERT_EQ(all[static_cast<size_t>(move)].points, plain.points);
      legal |= (plain.board != board ? 1U : 0U) << IndexOf(move);
    }
    ASSERT_EQ(LegalMoves(board), legal);
  }
}

}  // namespace
}  // namespace kibitz::twenty48
