#include "games/chess/fen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kibitz::chess {
namespace {

using ::testing::HasSubstr;

std::string ReasonFor(std::string_view fen, FenReading reading = {}) {
  const auto board = ParseFen(fen, reading);
  EXPECT_FALSE(board) << fen;
  return board.reason();
}

TEST(FenTest, RoundTrips) {
  for (const char* fen :
       {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b Kq - 3 17",
        "8/8/8/2k5/2pP4/8/8/4K3 b - d3 0 1", "4k3/8/8/8/8/8/8/4K3 w - - 99 200"}) {
    const auto board = ParseFen(fen);
    ASSERT_TRUE(board) << fen << ": " << board.reason();
    EXPECT_EQ(ToFen(*board), fen);
  }
  EXPECT_EQ(ToFen(Board()), kStartFen);
}

TEST(FenTest, FourFieldsAndBlanks) {
  const auto board = ParseFen("  8/8/8/2k5/2pP4/8/8/4K3   b  -\td3 ");
  ASSERT_TRUE(board) << board.reason();
  EXPECT_EQ(ToFen(*board), "8/8/8/2k5/2pP4/8/8/4K3 b - d3 0 1");
  EXPECT_EQ(ToFen(*board, {.counters = false}), "8/8/8/2k5/2pP4/8/8/4K3 b - d3");
  EXPECT_EQ(ParseFen("4k3/8/8/8/8/8/8/4K3 w - - 0 0")->fullmove_number(), 1);
  EXPECT_EQ(ToFen(*ParseFen("4k3/8/8/8/8/8/8/4K3 w - - 7")), "4k3/8/8/8/8/8/8/4K3 w - - 7 1");
}

TEST(FenTest, EpdOperations) {
  const FenReading epd{.epd_operations = true};
  const std::string bare = "4k3/8/8/8/8/8/8/4K2R w K -";
  const struct {
    const char* rest;
    const char* counters;
  } cases[] = {
      {"", " 0 1"},
      {" bm Rh8+; id \"mate; or not\";", " 0 1"},
      {" bm Rh8+", nullptr},  // No semicolon: it may be anything.
      {" 5", " 5 1"},
      {" 5 bm Rh8+;", " 5 1"},
      {" 5 9 bm Rh8+; c0 \"x\"", " 5 9"},
      {" hmvc 12; fmvn 40;", " 12 40"},
      {" hmvc x;", nullptr},
      {" 0 1 ;D1 15 ;D2 66", " 0 1"},
      {" 0 1 2;", nullptr},
      {" 0 1 x", nullptr},
  };
  for (const auto& test : cases) {
    const auto board = ParseFen(bare + test.rest, epd);
    ASSERT_EQ(static_cast<bool>(board), test.counters != nullptr) << test.rest;
    if (!board) continue;
    EXPECT_EQ(ToFen(*board), bare + test.counters) << test.rest;
  }
  EXPECT_THAT(ReasonFor(bare + " 0 1 x", epd), HasSubstr("expected EPD operations such as bm"));
  EXPECT_THAT(ReasonFor(bare + " bm Rh8+; id \"x\";"), HasSubstr("found 8 fields"));
}

TEST(FenTest, BothEnPassantDialects) {
  const auto board = ParseFen("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1");
  ASSERT_TRUE(board);
  EXPECT_EQ(ToFen(*board), "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
  EXPECT_EQ(ToFen(*board, {.every_passed_square = true}),
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1");
}

TEST(FenTest, EveryFaultHasItsReason) {
  const struct {
    const char* fen;
    const char* reason;
  } cases[] = {
      {"", "found 0 fields"},
      {"8/8/8/8/8/8/8/4K3 w -", "found 3 fields"},
      {"4k3/8/8/8/8/8/8/4K3 w - - 0 1 x", "found 7 fields"},
      {"8/8/8/8/8/8/8/4K3 w - - 0 1", "Black has 0 kings"},
      {"4k3/8/8/8/8/8/8/8 w - - 0 1", "White has 0 kings"},
      {"4kk2/8/8/8/8/8/8/4K3 w - - 0 1", "Black has 2 kings"},
      {"4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "a pawn stands on h8"},
      {"4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "a pawn stands on a1"},
      {"4k3/8/8/8/8/8/4r3/4K3 b - - 0 1", "White is in check but it is Black's move"},
      {"8/8/8/3kK3/8/8/8/8 w - - 0 1", "Black is in check but it is White's move"},
      {"4k3/8/8/8/8/8/8/8/4K3 w - - 0 1", "found 9 ranks"},
      {"4k3/8/8/8/8/8/4K3 w - - 0 1", "found 7 ranks"},
      {"4k4/8/8/8/8/8/8/4K3 w - - 0 1", "rank 8: '4k4' has too many squares"},
      {"4k2/8/8/8/8/8/8/4K3 w - - 0 1", "rank 8: '4k2' has 7 squares"},
      {"4k3/8/8/8/44/8/8/4K3 w - - 0 1", "two numbers in a row"},
      {"4k3/8/8/8/9/8/8/4K3 w - - 0 1", "'9' is neither a piece nor a number"},
      {"4k3/8/8/8/x7/8/8/4K3 w - - 0 1", "'x' is neither"},
      {"4k3/8/8/8/8/NNNNNNNN/NNNNNNNN/4K3 w - - 0 1", "White has 17 pieces"},
      {"4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", "White has 9 pawns"},
      {"4k3/8/8/8/8/8/8/4K3 x - - 0 1", "side to move: found 'x'"},
      {"4k3/8/8/8/8/8/8/4K2R w Q - 0 1", "castling right Q"},
      {"4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1", "castling right Q"},
      {"4k3/8/8/8/8/8/8/3K3R w K - 0 1", "castling right K"},
      {"4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "one right twice"},
      {"4k3/8/8/8/8/8/8/4K2R w H - 0 1", "expected - or letters of KQkq"},
      {"4k3/8/8/8/8/8/8/4K2R w x - 0 1", "expected - or letters of KQkq"},
      {"4k3/8/8/8/4P3/8/8/4K3 b - e4 0 1", "expected - or a square on rank 3"},
      {"4k3/8/8/8/4P3/8/8/4K3 b - x3 0 1", "expected - or a square on rank 3"},
      {"4k3/8/8/8/8/8/8/4K3 b - e3 0 1", "no pawn can just have passed e3"},
      {"4k3/8/8/8/4P3/8/4P3/4K3 b - e3 0 1", "no pawn can just have passed e3"},
      {"4k3/8/8/8/4P3/4N3/8/4K3 b - e3 0 1", "no pawn can just have passed e3"},
      {"4k3/8/8/8/8/8/8/4K3 w - - -1 1", "half-move clock"},
      {"4k3/8/8/8/8/8/8/4K3 w - - x 1", "half-move clock"},
      {"4k3/8/8/8/8/8/8/4K3 w - - 0 99999999999999999999", "move number"},
  };
  for (const auto& test : cases)
    EXPECT_THAT(ReasonFor(test.fen), HasSubstr(test.reason)) << test.fen;
}

TEST(FenTest, WrongCastlingCanBeDropped) {
  const auto board = ParseFen("4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1", {.drop_wrong_castling = true});
  ASSERT_TRUE(board);
  EXPECT_EQ(ToFen(*board), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
}

TEST(FenTest, Chess960Rights) {
  const FenReading reading{.chess960 = true};
  // X-FEN, Shredder-FEN, and an inner rook that needs its letter.
  auto board = ParseFen("1r2k1r1/8/8/8/8/8/8/1R2K1R1 w KQkq - 0 1", reading);
  ASSERT_TRUE(board) << board.reason();
  EXPECT_EQ(board->castling_rooks(), 0x4200000000000042U);
  EXPECT_EQ(ParseFen("1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgb - 0 1", reading)->castling_rooks(),
            0x4200000000000042U);
  board = ParseFen("4k3/8/8/8/8/8/8/RR2K3 w B - 0 1", reading);
  ASSERT_TRUE(board);
  EXPECT_EQ(ToFen(*board), "4k3/8/8/8/8/8/8/RR2K3 w B - 0 1");
  EXPECT_THAT(ReasonFor("4k3/8/8/8/8/8/8/RR2K3 w AB - 0 1", reading), HasSubstr("two rooks"));
  EXPECT_THAT(ReasonFor("4k3/8/8/8/8/8/8/4K3 w K - 0 1", reading), HasSubstr("castling right K"));
  EXPECT_THAT(ReasonFor("4k3/8/8/8/8/8/4K3/R7 w A - 0 1", reading), HasSubstr("castling right A"));
}

}  // namespace
}  // namespace kibitz::chess
