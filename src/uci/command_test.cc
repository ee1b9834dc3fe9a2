#include "uci/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using ::testing::HasSubstr;

Verb VerbIn(std::string_view line) { return ParseCommand(line).verb; }

TEST(CommandTest, FindsTheVerb) {
  EXPECT_EQ(VerbIn("uci"), Verb::kUci);
  EXPECT_EQ(VerbIn("  isready \r"), Verb::kIsReady);
  EXPECT_EQ(VerbIn("\tgo\tinfinite"), Verb::kGo);
  EXPECT_EQ(VerbIn("joho debug on"), Verb::kDebug);  // As UCI's own example has it.
  EXPECT_EQ(VerbIn("ucinewgame"), Verb::kNewGame);
  EXPECT_EQ(VerbIn("register later"), Verb::kRegister);
  EXPECT_EQ(VerbIn("d"), Verb::kBoard);
  EXPECT_EQ(VerbIn("x d"), Verb::kUnknown);
  EXPECT_EQ(VerbIn(""), Verb::kNothing);
  EXPECT_EQ(VerbIn(" \t\r"), Verb::kNothing);
  EXPECT_EQ(VerbIn("GO"), Verb::kUnknown);
  EXPECT_EQ(VerbIn(std::string_view("go\0", 3)), Verb::kUnknown);
  EXPECT_EQ(VerbIn(std::string_view("\0 quit", 6)), Verb::kQuit);
  EXPECT_EQ(VerbIn(std::string(1 << 20, 'x')), Verb::kUnknown);
  EXPECT_EQ(Trim(ParseCommand("x position startpos").rest), "startpos");
}

TEST(CommandTest, ReadsOptionSettings) {
  auto setting = ParseSetOption(" name Move Overhead value 30");
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->name, "Move Overhead");
  EXPECT_EQ(setting->value, "30");
  setting = ParseSetOption(" name Model value  /my models/a  b.pt \r");
  EXPECT_EQ(setting->value, "/my models/a  b.pt");
  EXPECT_EQ(ParseSetOption("name Clear")->value, "");
  EXPECT_EQ(ParseSetOption("name Model value")->value, "");
  EXPECT_THAT(ParseSetOption("Hash 3").reason(), HasSubstr("expected 'name"));
  EXPECT_THAT(ParseSetOption("name value 3").reason(), HasSubstr("name is missing"));
  EXPECT_FALSE(ParseSetOption(""));
}

TEST(CommandTest, ReadsPositions) {
  EXPECT_EQ(ParsePosition("startpos")->game.Current(), Board());
  const auto played = ParsePosition("startpos moves e2e4 e7e5");
  ASSERT_TRUE(played);
  EXPECT_EQ(played->game.moves.size(), 2u);
  EXPECT_EQ(ToFen(played->game.Current()),
            "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2");
  // Castling is decided with the position, in both ways of writing it.
  for (const char* castle : {"e1g1", "e1h1"}) {
    const auto after =
        ParsePosition(std::string("fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves ") + castle);
    ASSERT_TRUE(after);
    EXPECT_EQ(ToFen(after->game.Current(), {.counters = false}), "r3k2r/8/8/8/8/8/8/R4RK1 b kq -");
  }
  // One to six fields, and castling rights that cannot be.
  for (const char* fields :
       {"", " w", " w -", " w - -", " w - - 0", " w - - 0 1", " w KQkq - 0 1"}) {
    const auto read = ParsePosition(std::string("fen 4k3/8/8/8/8/8/8/4K3") + fields);
    ASSERT_TRUE(read) << fields << read.reason();
    EXPECT_EQ(ToFen(read->game.Current()), "4k3/8/8/8/8/8/8/4K3 w - - 0 1") << fields;
    EXPECT_TRUE(read->problems.empty()) << fields;
  }
  // Rights of Chess960 are left out, and told.
  const auto fischer = ParsePosition("fen 1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgb - 0 1");
  ASSERT_TRUE(fischer) << fischer.reason();
  ASSERT_EQ(fischer->problems.size(), 1u);
  EXPECT_THAT(fischer->problems[0], HasSubstr("Chess960"));
  // A promotion in capitals, as some programs write it.
  EXPECT_TRUE(ParsePosition("fen 8/4P1k1/8/8/8/8/8/4K3 w - - 0 1 moves e7e8Q"));
  EXPECT_TRUE(ParsePosition("startpos moves"));
}

TEST(CommandTest, TellsWhatIsWrongWithAPosition) {
  const auto reason = [](std::string_view rest) { return ParsePosition(rest).reason(); };
  EXPECT_THAT(reason(""), HasSubstr("expected startpos or fen"));
  EXPECT_THAT(reason("fen"), HasSubstr("FEN is missing"));
  EXPECT_THAT(reason("fen 8/8/8/8/8/8/8/8 w - - 0 1"), HasSubstr("king"));
  EXPECT_THAT(reason("startpos e2e4"), HasSubstr("expected moves"));
  EXPECT_THAT(reason("startpos moves e2e4 e2e4"), HasSubstr("move 2: move e2e4 is not legal"));
  EXPECT_THAT(reason("startpos moves e2e4 x"), HasSubstr("move 2"));
  EXPECT_THAT(reason("fen 4k3/P7/8/8/8/8/8/4K3 w - - 0 1 moves a7a8"), HasSubstr("a7a8q"));
  EXPECT_LT(reason("fen " + std::string(1 << 20, 'x')).size(), 400U);
}

TEST(CommandTest, ReadsGo) {
  const Board board;
  const GoRequest all = ParseGo(
      "wtime 1 btime 2 winc 3 binc 4 movestogo 5 depth 6 nodes 7 mate 8 movetime 9 infinite ponder",
      board);
  EXPECT_EQ(all.white_time, 1);
  EXPECT_EQ(all.black_time, 2);
  EXPECT_EQ(all.white_increment, 3);
  EXPECT_EQ(all.black_increment, 4);
  EXPECT_EQ(all.moves_to_go, 5);
  EXPECT_EQ(all.depth, 6);
  EXPECT_EQ(all.nodes, 7);
  EXPECT_EQ(all.movetime, 9);
  EXPECT_TRUE(all.infinite && all.ponder);
  ASSERT_EQ(all.problems.size(), 1u);
  EXPECT_THAT(all.problems[0], HasSubstr("mate"));

  const GoRequest moves = ParseGo("searchmoves e2e4 d2d4 e2e4 depth 3", board);
  EXPECT_EQ(moves.search_moves.size(), 2U);
  EXPECT_EQ(moves.depth, 3);

  const GoRequest odd = ParseGo("wtime -50 depth 0 nodes x foo searchmoves e2e5 e2e4", board);
  EXPECT_EQ(odd.white_time, 0);
  EXPECT_EQ(odd.depth, 1);
  EXPECT_FALSE(odd.nodes);
  EXPECT_EQ(odd.search_moves.size(), 1U);
  ASSERT_EQ(odd.problems.size(), 2U);
  EXPECT_THAT(odd.problems[0], HasSubstr("nodes 'x' is no whole number"));
  EXPECT_THAT(odd.problems[1], HasSubstr("e2e5"));
  EXPECT_EQ(ParseGo("movetime 9223372036854775807", board).movetime, 1'000'000'000'000);
  EXPECT_EQ(ParseGo("movetime", board).problems.size(), 1U);
}

}  // namespace
}  // namespace kibitz::uci
