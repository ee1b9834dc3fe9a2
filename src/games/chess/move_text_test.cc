#include "games/chess/move_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "games/chess/san.h"

namespace kibitz::chess {
namespace {

using ::testing::HasSubstr;

Board At(const char* fen, bool chess960 = false) {
  return ParseFen(fen, {.chess960 = chess960}).OrThrow(fen);
}

constexpr const char* kCastles = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";

TEST(MoveTextTest, CastlingInEveryStyle) {
  const Board board = At(kCastles);
  const auto move = ParseMove(board, "e1g1");
  ASSERT_TRUE(move) << move.reason();
  EXPECT_EQ(move->kind(), Move::Kind::kCastle);
  EXPECT_EQ(ToText(board, *move, MoveStyle::kUci), "e1g1");
  EXPECT_EQ(ToText(board, *move, MoveStyle::kUciRook), "e1h1");
  EXPECT_EQ(ToText(board, *move, MoveStyle::kModel), "e1h1");
  EXPECT_EQ(*ParseMove(board, "e1h1"), *move);
  EXPECT_EQ(*ParseMove(board, "e1h1", MoveStyle::kModel), *move);
  EXPECT_EQ(ToText(board, *ParseMove(board, "e1a1")), "e1c1");
}

// The same letters are a rook's move when a rook stands there.
TEST(MoveTextTest, TheSameTextWithoutTheKingIsNoCastling) {
  const Board board = At("3k4/8/8/8/8/8/K7/4R3 w - - 0 1");
  for (const char* text : {"e1g1", "e1h1", "e1c1", "e1a1"}) {
    for (MoveStyle style : {MoveStyle::kUci, MoveStyle::kUciRook, MoveStyle::kModel}) {
      const auto move = ParseMove(board, text, style);
      ASSERT_TRUE(move) << text;
      EXPECT_EQ(move->kind(), Move::Kind::kNormal);
      EXPECT_EQ(ToText(board, *move, style), text);
    }
  }
}

TEST(MoveTextTest, KnightPromotionIsBareOnlyForTheModel) {
  const Board board = At("4k3/P7/8/8/8/8/8/4K3 w - - 0 1");
  const auto knight = ParseMove(board, "a7a8n");
  ASSERT_TRUE(knight);
  EXPECT_EQ(ToText(board, *knight, MoveStyle::kModel), "a7a8");
  EXPECT_EQ(*ParseMove(board, "a7a8", MoveStyle::kModel), *knight);
  EXPECT_THAT(ParseMove(board, "a7a8").reason(), HasSubstr("lacks the piece"));
  EXPECT_EQ(ToText(board, *ParseMove(board, "a7a8q"), MoveStyle::kModel), "a7a8q");
}

TEST(MoveTextTest, WrongTextsAreRefused) {
  const Board board = At(kCastles);
  for (const char* text : {"", "e", "e1", "e1g", "e1g1qq", "z1g1", "e1g9", "e1g1x", "0000", "a1a1",
                           "e1g1q", "e8g8", "d4d5", "E1G1", "e1e3", "a1h1"}) {
    EXPECT_FALSE(ParseMove(board, text)) << text;
  }
  EXPECT_THAT(ParseMove(board, "e2e4").reason(), HasSubstr("not legal in r3k2r/8"));
  EXPECT_THAT(ParseMove(board, "hello").reason(), HasSubstr("'hello' is no move"));
  EXPECT_FALSE(ParseMove(At("r3k2r/8/8/8/8/8/8/RN2K2R w KQkq - 0 1"), "e1c1"));
  EXPECT_FALSE(ParseMove(At("r3k2r/8/8/8/8/8/8/R3K2R w - - 0 1"), "e1g1"));
}

TEST(MoveTextTest, Chess960CastlingIsKingTakesRook) {
  const Board board = At("1r3k1r/8/8/8/8/8/8/1R3K1R w KQkq - 0 1", true);
  const auto move = ParseMove(board, "f1h1");
  ASSERT_TRUE(move) << move.reason();
  EXPECT_EQ(ToText(board, *move, MoveStyle::kUci), "f1h1");
  // One step of the king towards the rook stays a step.
  EXPECT_EQ(ParseMove(board, "f1g1")->kind(), Move::Kind::kNormal);
}

// Every legal move of random games comes back from every notation, SAN too.
TEST(MoveTextTest, RandomMovesRoundTrip) {
  Rng rng({.seed = 3});
  Board board = At("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1");
  for (int ply = 0; ply < 20000; ++ply) {
    const MoveList moves = LegalMoves(board);
    if (moves.empty() || board.halfmove_clock() >= 100) {
      board = ply % 2 == 0 ? Board() : At(kCastles);
      continue;
    }
    for (Move move : moves) {
      for (MoveStyle style : {MoveStyle::kUci, MoveStyle::kUciRook, MoveStyle::kModel}) {
        const std::string text = ToText(board, move, style);
        const auto read = ParseMove(board, text, style);
        ASSERT_TRUE(read) << read.reason();
        ASSERT_EQ(*read, move) << text << " in " << ToFen(board);
      }
      const std::string san = ToSan(board, move);
      const auto read = ParseSan(board, san);
      ASSERT_TRUE(read) << read.reason();
      ASSERT_EQ(*read, move) << san << " in " << ToFen(board);
    }
    board = board.After(moves[rng.Below(moves.size())]);
  }
}

}  // namespace
}  // namespace kibitz::chess
