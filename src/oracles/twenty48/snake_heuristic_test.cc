#include "oracles/twenty48/snake_heuristic.h"

#include <gtest/gtest.h>

#include <vector>

#include "games/twenty48/symmetry.h"

namespace kibitz::oracles {
namespace {

using twenty48::Board;

float ValueOf(const Board& board) {
  static const SnakeHeuristic evaluation;
  float value = 0;
  evaluation.Evaluate({&board, 1}, {&value, 1});
  return value;
}

TEST(SnakeHeuristic, WantsTilesInOrderFromACorner) {
  const Board ordered =
      *Board::FromRanks(std::vector<int>{8, 7, 6, 5, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0});
  const Board broken =
      *Board::FromRanks(std::vector<int>{7, 8, 6, 5, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_GT(ValueOf(ordered), ValueOf(broken));
  EXPECT_EQ(ValueOf(Board().With(0, 3).With(1, 2)), 8 + 4 * 0.5F);
  for (uint64_t view : twenty48::Views(broken.packed())) {
    EXPECT_EQ(ValueOf(Board::FromBits(view)), ValueOf(broken));
  }
}

}  // namespace
}  // namespace kibitz::oracles
