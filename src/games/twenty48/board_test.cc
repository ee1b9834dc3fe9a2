#include "games/twenty48/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "games/twenty48/diagram.h"

namespace kibitz::twenty48 {
namespace {

using ::testing::HasSubstr;

TEST(Board, HoldsEveryRankInEveryCell) {
  for (int cell = 0; cell < kCells; ++cell) {
    for (int rank = 0; rank <= kMaxRank; ++rank) {
      const Board board = Board().With(3, 17).With(12, 15).With(cell, rank);
      EXPECT_EQ(board.Rank(cell), rank);
      EXPECT_EQ(*Board::FromRanks(board.Ranks()), board);
      EXPECT_EQ(board.CountEmpty(), 16 - (cell == 3 || cell == 12 ? 1 : 2) - (rank > 0 ? 1 : 0));
      const int other = cell == 3 ? 15 : 17;
      EXPECT_EQ(board.MaxRank(), std::max(rank, other));
    }
  }
}

TEST(Board, PacksTheFirstCellOnTop) {
  const std::vector<int> ranks = {12, 11, 9, 5, 8, 7, 6, 3, 0, 2, 3, 1, 0, 0, 1, 16};
  const Board board = *Board::FromRanks(ranks);
  EXPECT_EQ(board.packed(), 0xcb9587630231001fU);
  EXPECT_EQ(board.Over32768(), 1U << 15);
  EXPECT_EQ(board.TileSum(), 4096 + 2048 + 512 + 32 + 256 + 128 + 64 + 8 + 4 + 8 + 2 + 2 + 65536);
}

TEST(Board, RefusesWhatIsNoBoard) {
  EXPECT_THAT(Board::FromRanks(std::vector<int>(15)).reason(), HasSubstr("15 cells"));
  std::vector<int> ranks(16);
  ranks[7] = 40;
  EXPECT_THAT(Board::FromRanks(ranks).reason(), HasSubstr("rank 40 in cell 7"));
  ranks[7] = -1;
  EXPECT_THAT(Board::FromRanks(ranks).reason(), HasSubstr("rank -1"));
}

TEST(Board, NamesMoves) {
  for (Move move : kMoves) EXPECT_EQ(*ParseMove(NameOf(move)), move);
  EXPECT_THAT(ParseMove("Up").reason(), HasSubstr("is no move; a move is up"));
}

TEST(Board, DrawsTiles) {
  const Board board = Board().With(0, 17).With(5, 1);
  EXPECT_EQ(Diagram(board),
            " 131072      .      .      .\n      .      2      .      .\n"
            "      .      .      .      .\n      .      .      .      .\n");
  EXPECT_THAT(Diagram(board, {.color = true}), HasSubstr("131072"));
}

}  // namespace
}  // namespace kibitz::twenty48
