#include "games/chess/san.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::chess {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* fen;
  const char* uci;
  const char* san;
};

constexpr Case kCases[] = {
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "Nf3"},
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "e2e4", "e4"},
    {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "O-O"},
    {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O"},
    {"4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", "a8=Q+"},
    {"1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8n", "axb8=N"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"},
    {"4k3/8/8/8/8/8/8/RN2K2R w KQ - 0 1", "h1f1", "Rf1"},
    {"4k3/8/8/8/8/8/4K3/R6R w - - 0 1", "a1d1", "Rad1"},
    {"4k3/8/R7/8/8/8/4K3/R7 w - - 0 1", "a1a3", "R1a3"},
    {"k7/1p6/8/8/8/2Q1Q3/8/K1Q5 w - - 0 1", "c3d2", "Qc3d2"},
    {"7k/8/5N1K/8/8/8/8/6R1 w - - 0 1", "g1g8", "Rg8#"},
    // A pinned twin is no reason to disambiguate.
    {"4k3/8/8/8/1b6/2N5/8/4K1N1 w - - 0 1", "g1e2", "Ne2"},
};

TEST(SanTest, WritesAndReads) {
  for (const Case& test : kCases) {
    const Board board = ParseFen(test.fen).OrThrow(test.fen);
    const auto move = ParseMove(board, test.uci);
    ASSERT_TRUE(move) << move.reason();
    EXPECT_EQ(ToSan(board, *move), test.san);
    const auto read = ParseSan(board, test.san);
    ASSERT_TRUE(read) << read.reason();
    EXPECT_EQ(*read, *move);
  }
}

TEST(SanTest, ThreeQueensNeedFileAndRank) {
  const Board board = ParseFen("8/8/k7/8/4Q2Q/8/8/K6Q w - - 0 1").OrThrow("");
  EXPECT_EQ(ToSan(board, *ParseMove(board, "h4e1")), "Qh4e1");
}

TEST(SanTest, ReadsWhatFilesContain) {
  const struct {
    const char* fen;
    const char* text;
    const char* uci;
  } cases[] = {
      {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "0-0", "e1g1"},
      {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "O-O-O!?", "e1c1"},
      {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "e1g1"},
      {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "Rhg1", "h1g1"},
      {"4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8Q", "a7a8q"},
      {"4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8(Q)", "a7a8q"},
      {"4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", "a7a8q"},
      {"4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8=N#", "a7a8n"},
      {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "ed6", "e5d6"},
      {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6e.p.", "e5d6"},
      {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5xd6", "e5d6"},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "Ng1-f3", "g1f3"},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "g1f3"},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "Ngf3??", "g1f3"},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "Pe4", "e2e4"},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "e2-e4", "e2e4"},
      // A bishop's letter and a b-pawn's file are not the same.
      {"4k3/8/8/8/8/2n5/1P6/2B1K3 w - - 0 1", "bxc3", "b2c3"},
  };
  for (const auto& test : cases) {
    const Board board = ParseFen(test.fen).OrThrow(test.fen);
    const auto move = ParseSan(board, test.text);
    ASSERT_TRUE(move) << test.text << ": " << move.reason();
    EXPECT_EQ(ToText(board, *move), test.uci) << test.text;
  }
}

TEST(SanTest, WrongTextsAreRefused) {
  const Board board;
  for (const char* text :
       {"",      "e", "N", "Nf",     "Nf9", "Xf3", "e5",    "Nd2", "O-O", "O-O-O-O", "e4=Q",
        "Kf3=Q", "!", "+", "e4e4e4", "1",   "--",  "Nxf3x", "=Q",  "()",  "Q)"}) {
    EXPECT_FALSE(ParseSan(board, text)) << text;
  }
  const Board rooks = ParseFen("4k3/8/8/8/8/8/4K3/R6R w - - 0 1").OrThrow("");
  EXPECT_THAT(ParseSan(rooks, "Rd1").reason(), HasSubstr("may be two moves"));
  EXPECT_THAT(ParseSan(rooks, "Rd5").reason(), HasSubstr("not legal"));
  EXPECT_THAT(ParseSan(rooks, "hello").reason(), HasSubstr("is no move"));
}

}  // namespace
}  // namespace kibitz::chess
