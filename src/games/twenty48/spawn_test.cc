#include "games/twenty48/spawn.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace kibitz::twenty48 {
namespace {

// A statistic of chi-square with `freedom` degrees as a number of standard deviations (Wilson and
// Hilferty, 1931).
double Sigmas(double chi_square, double freedom) {
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

constexpr int kDraws = 10'000'000;

TEST(Spawn, EveryEmptyCellAndTileHasItsChance) {
  for (int empty = 1; empty <= kCells; ++empty) {
    Rng rng({.seed = 7, .sample = static_cast<uint64_t>(empty), .purpose = Purpose("chi-square")});
    Board board;  // Filled but for `empty` cells, spread out.
    for (int cell = 0; board.CountEmpty() > empty; cell = (cell + 5) % kCells) {
      board = board.With(cell, 3 + cell % 2);
    }
    std::array<std::array<int, 2>, kCells> seen{};
    for (int i = 0; i < kDraws; ++i) {
      const Board after = Spawn(board, rng);
      const uint64_t tile = after.packed() ^ board.packed();
      const int cell = std::countl_zero(tile) / 4;
      ++seen[static_cast<size_t>(cell)][static_cast<size_t>(after.Rank(cell) - 1)];
    }
    double chi_square = 0;
    for (int cell = 0; cell < kCells; ++cell) {
      const auto& counts = seen[static_cast<size_t>(cell)];
      if (board.Rank(cell) != 0) {
        EXPECT_EQ(counts[0] + counts[1], 0);
        continue;
      }
      for (size_t i = 0; i < 2; ++i) {
        const double expected = kDraws * (i == 0 ? kChanceOfTwo : 1 - kChanceOfTwo) / empty;
        chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
      }
    }
    const double sigmas = Sigmas(chi_square, 2 * empty - 1);
    EXPECT_LT(std::abs(sigmas), 4) << empty << " empty cells: chi-square " << chi_square;
  }
}

// What the points of all merges must be: a tile of rank r holds (r - 1) 2^r of them, less 4 for
// each 4 that appeared instead of being made.
int64_t PointsIn(const Board& board) {
  int64_t points = 0;
  for (int rank : board.Ranks()) points += rank == 0 ? 0 : (rank - 1) * TileOf(rank);
  return points;
}

// Plays at random for a million steps and checks what must hold at each.
TEST(Game, RandomPlayKeepsTheBooks) {
  int64_t steps = 0;
  for (uint64_t number = 0; steps < 1'000'000; ++number) {
    Rng rng({.seed = 3, .sample = number, .purpose = Purpose("random game")});
    Game game = Game::Start(rng);
    ASSERT_EQ(game.board.CountEmpty(), 14);
    int64_t gift = PointsIn(game.board);  // Points never earned: fours that appeared.
    while (const unsigned legal = LegalMoves(game.board)) {
      Move move;
      do {
        move = kMoves[rng.Below(4)];
      } while ((legal >> IndexOf(move) & 1) == 0);
      const Game before = game;
      const Slid slid = Slide(game.board, move);
      game.Play(move, rng);
      ++steps;
      const int64_t new_tile = game.board.TileSum() - before.board.TileSum();
      ASSERT_TRUE(new_tile == 2 || new_tile == 4);
      if (new_tile == 4) gift += 4;
      ASSERT_EQ(slid.board.TileSum(), before.board.TileSum());
      ASSERT_EQ(game.board.CountEmpty(), slid.board.CountEmpty() - 1);
      ASSERT_EQ(game.score, PointsIn(game.board) - gift);
      ASSERT_EQ(game.moves, before.moves + 1);
    }
    ASSERT_EQ(game.board.CountEmpty(), 0);
    for (Move move : kMoves) ASSERT_EQ(SlidePlain(game.board, move).board, game.board);
  }
}

TEST(Game, IsTheSameForTheSameStream) {
  const auto play = [](uint64_t seed) {
    Rng rng({.seed = seed, .purpose = Purpose("same")});
    Game game = Game::Start(rng);
    for (int i = 0; i < 50; ++i) {
      const unsigned legal = LegalMoves(game.board);
      if (legal == 0) break;
      game.Play(kMoves[static_cast<size_t>(std::countr_zero(legal))], rng);
    }
    return game.board;
  };
  EXPECT_EQ(play(5), play(5));
  EXPECT_NE(play(5), play(6));
}

}  // namespace
}  // namespace kibitz::twenty48
