#include "oracles/engines/uci_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "games/chess/fen.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(UciTextTest, ReadsOptions) {
  const auto spin = ParseOption("option name Skill Level type spin default 20 min 0 max 20");
  ASSERT_TRUE(spin);
  EXPECT_EQ(spin->name, "Skill Level");
  EXPECT_EQ(spin->type, UciOption::Type::kSpin);
  EXPECT_EQ(spin->default_value, "20");
  EXPECT_EQ(spin->min, 0);
  EXPECT_EQ(spin->max, 20);
  const auto combo =
      ParseOption("option name Style type combo default Very Calm var Very Calm var Wild");
  ASSERT_TRUE(combo);
  EXPECT_EQ(combo->default_value, "Very Calm");
  EXPECT_THAT(combo->choices, ElementsAre("Very Calm", "Wild"));
  EXPECT_EQ(ParseOption("option name File type string default <empty>")->default_value, "");
  EXPECT_EQ(ParseOption("option name File type string default")->default_value, "");
  EXPECT_EQ(ParseOption("option name Clear Hash type button")->name, "Clear Hash");
  for (const char* bad : {"", "option", "option name x", "option type spin", "option name x type y",
                          "info name x type spin"}) {
    EXPECT_FALSE(ParseOption(bad)) << bad;
  }
}

TEST(UciTextTest, KnowsWhatAnOptionTakes) {
  const auto check = [](const char* option, const char* value) {
    return WhyNot(*ParseOption(option), value);
  };
  EXPECT_EQ(check("option name H type spin min 1 max 8", "8"), "");
  EXPECT_THAT(check("option name H type spin min 1 max 8", "9"), HasSubstr("from 1 to 8"));
  EXPECT_THAT(check("option name H type spin min 1 max 8", "x"), HasSubstr("whole number"));
  EXPECT_EQ(check("option name H type spin", "-5"), "");
  EXPECT_EQ(check("option name H type check", "true"), "");
  EXPECT_NE(check("option name H type check", "1"), "");
  EXPECT_EQ(check("option name H type combo var Wild", "wild"), "");
  EXPECT_THAT(check("option name H type combo var a var b", "c"), HasSubstr("one of: a, b"));
  EXPECT_NE(check("option name H type string", "a\nquit"), "");
  EXPECT_NE(check("option name H type button", "now"), "");
}

TEST(UciTextTest, ReadsInfo) {
  const Info info = ParseInfo(
      "info depth 7 seldepth 9 multipv 2 score cp -32 wdl 43 955 2 upperbound nodes 5000 nps "
      "416666 "
      "hashfull 2 tbhits 0 time 12 pv e2e4 e7e5 g1f3",
      Board());
  EXPECT_EQ(info.depth, 7);
  EXPECT_EQ(info.selective_depth, 9);
  EXPECT_EQ(info.multipv, 2);
  EXPECT_EQ(info.nodes, 5000);
  EXPECT_EQ(info.nodes_per_second, 416666);
  EXPECT_EQ(info.milliseconds, 12);
  EXPECT_EQ(info.pv.size(), 3U);
  EXPECT_EQ(info.pv_beyond, 0);
  ASSERT_TRUE(info.score);
  EXPECT_EQ(
      *info.score,
      (MoverScore{
          .centipawns = -32, .mate = {}, .bound = Bound::kUpper, .wdl = WdlPermille{43, 955, 2}}));
}

TEST(UciTextTest, ReadsOddInfos) {
  const Board start;
  // Fields behind the pv, blanks, unknown fields, an illegal move in the pv.
  const Info odd =
      ParseInfo("info\tpv e2e4 e2e4 e7e5 depth 3  ebf 1.5 score mate 3 refutation d1h5", start);
  EXPECT_EQ(odd.depth, 3);
  EXPECT_EQ(odd.pv.size(), 1U);
  EXPECT_EQ(odd.pv_beyond, 2);
  EXPECT_EQ(odd.score->mate, (Mate{true, 3}));
  EXPECT_EQ(ParseInfo("info score mate -2", start).score->mate, (Mate{false, 2}));
  EXPECT_EQ(ParseInfo("info score mate 0", start).score->mate, (Mate{false, 0}));
  EXPECT_EQ(ParseInfo("info string  pv e2e4 depth 3", start).text, "pv e2e4 depth 3");
  EXPECT_FALSE(ParseInfo("info string depth 3", start).depth);
  // What is said twice: the last holds.
  EXPECT_EQ(ParseInfo("info pv e2e4 e7e5 pv d2d4", start).pv.size(), 1U);
  EXPECT_FALSE(ParseInfo("info score cp 5 score mate 3", start).score->centipawns);
  // Numbers that are none, or too large.
  EXPECT_FALSE(ParseInfo("info depth x nodes 5", start).depth);
  EXPECT_EQ(ParseInfo("info depth x nodes 5", start).nodes, 5);
  EXPECT_FALSE(ParseInfo("info depth 99999999999999999999", start).depth);
  EXPECT_FALSE(ParseInfo("info depth 3000000000", start).depth);
  EXPECT_FALSE(ParseInfo("info score cp", start).score);
  EXPECT_FALSE(ParseInfo("info score cp -2147483648", start).score);
  EXPECT_FALSE(ParseInfo("info score wdl 1 2", start).score);
  EXPECT_FALSE(ParseInfo("", start).score);
}

TEST(UciTextTest, ReadsBestMove) {
  const Board start;
  const auto best = ParseBestMove("bestmove e2e4 ponder e7e5", start);
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->move && best->ponder);
  EXPECT_FALSE(ParseBestMove("bestmove (none)", start)->move);
  EXPECT_FALSE(ParseBestMove("bestmove 0000", start)->move);
  EXPECT_FALSE(ParseBestMove("bestmove e2e4 ponder e2e4", start)->ponder);
  EXPECT_THAT(ParseBestMove("bestmove e2e5", start).reason(), HasSubstr("not legal"));
  EXPECT_THAT(ParseBestMove("bestmove", start).reason(), HasSubstr("names no move"));
}

TEST(ScoreTest, TurnsWithThePointOfView) {
  const MoverScore score{
      .centipawns = 30, .mate = {}, .bound = Bound::kLower, .wdl = WdlPermille{500, 300, 200}};
  EXPECT_EQ(ToWhite(score, chess::Color::kWhite).centipawns, 30);
  const WhiteScore white = ToWhite(score, chess::Color::kBlack);
  EXPECT_EQ(white.centipawns, -30);
  EXPECT_EQ(white.bound, Bound::kUpper);
  EXPECT_EQ(white.wdl, (WdlPermille{200, 300, 500}));
  EXPECT_EQ(ToMover(white, chess::Color::kBlack), score);
  // Who is mated stays known.
  const MoverScore mated{.centipawns = {}, .mate = Mate{false, 0}, .bound = {}, .wdl = {}};
  EXPECT_EQ(ToWhite(mated, chess::Color::kBlack).mate, (Mate{true, 0}));
  EXPECT_EQ(ToMover(ToWhite(mated, chess::Color::kBlack), chess::Color::kBlack), mated);
}

}  // namespace
}  // namespace kibitz::oracles
