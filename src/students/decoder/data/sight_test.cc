#include "students/decoder/data/sight.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/random.h"
#include "games/chess/attacks.h"
#include "games/chess/board.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

using chess::Board;
using chess::Square;

// Of a square: what each slot sees.
std::set<std::pair<int, int>> SeenFrom(std::span<const SightRow> sights, int square) {
  std::set<std::pair<int, int>> seen;  // Square and piece.
  for (const SightRow& sight : sights) {
    if (sight.square != square) continue;
    const int slot = sight.row / kSightPieces;
    EXPECT_TRUE(seen.emplace(SightSquare(square, slot), sight.row % kSightPieces).second);
  }
  return seen;
}

// A queen and a knight on a square attack the pieces that it sees, and no others.
TEST(SightTest, SquaresSeeWhatAQueenAndAKnightAttackThere) {
  Rng rng({.seed = 7});
  Board board;
  for (int ply = 0; ply < 400; ++ply) {
    const BoardTokens tokens = BoardTokensOf(board);
    const std::vector<SightRow> sights = SightsOf(tokens);
    for (int square = 0; square < 64; ++square) {
      const Square at(square);
      const uint64_t attacked =
          (chess::BishopAttacks(at, board.occupied()) | chess::RookAttacks(at, board.occupied()) |
           chess::KnightAttacks(at)) &
          board.occupied();
      std::set<std::pair<int, int>> expected;
      for (int other = 0; other < 64; ++other) {
        if ((attacked & Square(other).bit()) == 0) continue;
        expected.emplace(other, SightPiece(tokens[static_cast<size_t>(other) + 1]));
      }
      EXPECT_EQ(SeenFrom(sights, square), expected);
    }
    const chess::MoveList moves = chess::LegalMoves(board);
    board = moves.empty() ? Board() : board.After(moves[rng.Below(moves.size())]);
  }
}

TEST(SightTest, AddsRowsOfTheEmbedding) {
  const BoardTokens board = BoardTokensOf(Board());
  constexpr int64_t kWidth = 3;
  std::vector<float> embedding;
  for (int i = 0; i < kSightRows * kWidth; ++i) embedding.push_back(static_cast<float>(i % 101));
  std::vector<float> expected(kBoardTokens * kWidth, 1);
  for (const SightRow& sight : SightsOf(board)) {
    for (int64_t i = 0; i < kWidth; ++i) {
      expected[static_cast<size_t>((sight.square + 1) * kWidth + i)] +=
          embedding[static_cast<size_t>(sight.row * kWidth + i)];
    }
  }
  std::vector<float> rows(kBoardTokens * kWidth, 1);
  AddSights(board, embedding, kWidth, rows.data());
  EXPECT_EQ(rows, expected);
}

// The planes of the board, on its own squares.
TEST(SightTest, AttacksAreThoseOfTheBoard) {
  Rng rng({.seed = 9});
  Board board;
  for (int ply = 0; ply < 400; ++ply) {
    const int mirror = board.side_to_move() == chess::Color::kBlack ? 56 : 0;
    chess::AttackPlanes planes{};
    for (const SightRow& attack : AttacksOf(BoardTokensOf(board))) {
      planes[static_cast<size_t>(attack.row)] |= Square(attack.square ^ mirror).bit();
    }
    ASSERT_EQ(planes, chess::AttackPlanesOf(board)) << ply;
    const chess::MoveList moves = chess::LegalMoves(board);
    board = moves.empty() ? Board() : board.After(moves[rng.Below(moves.size())]);
  }
}

TEST(SightTest, AddsAttacksOfTheEmbedding) {
  const BoardTokens board = BoardTokensOf(Board());
  const std::vector<float> embedding(kAttackRows, 1);
  std::vector<float> rows(kBoardTokens);
  AddAttacks(board, embedding, 1, rows.data());
  std::vector<float> counts(kBoardTokens);
  for (const SightRow& attack : AttacksOf(board)) ++counts[static_cast<size_t>(attack.square) + 1];
  EXPECT_EQ(rows, counts);
}

TEST(SightTest, OtherTokensAreEmpty) {
  const BoardTokens empty = BoardTokens{};  // Moves.
  EXPECT_TRUE(SightsOf(empty).empty());
  EXPECT_TRUE(AttacksOf(empty).empty());
}

}  // namespace
}  // namespace kibitz::decoder
