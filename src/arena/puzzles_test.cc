#include "arena/puzzles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include "arena/suite.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

using ::testing::HasSubstr;

std::vector<Puzzle> Load(const std::string& text, const PuzzleOptions& options = {},
                         SkipCounter* skipped = nullptr) {
  const testing::TempFolder folder;
  WriteFileAtomically(folder.File("p.csv"), text);
  SkipCounter counter;
  return LoadPuzzles({folder.File("p.csv")}, options, skipped != nullptr ? *skipped : counter);
}

PuzzleResult Solve(const std::vector<Puzzle>& puzzles, const std::string& player) {
  Asker asker({.player = player}, 2);
  return RunPuzzles(puzzles, asker, {.concurrency = 2}, {}, nullptr);
}

constexpr const char* kMate = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1,d1d8,600\n";

TEST(PuzzlesTest, ReadsBothLayouts) {
  const auto lichess = Load(
      "PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags\n"
      "00LII,2k4r/pp6/3p4/2pBb3/4P2B/2P2bp1/PP1R4/R5K1 w - - 1 32,d2g2 h8h4 a1f1 f3g2,1661,81,85,"
      "50,advantage short,https://x,\n");
  ASSERT_EQ(lichess.size(), 1u);
  EXPECT_EQ(lichess[0].id, "00LII");
  EXPECT_EQ(lichess[0].game.moves.size(), 1u);  // The opponent's move has been played.
  EXPECT_EQ(lichess[0].solution.size(), 3u);
  EXPECT_EQ(lichess[0].rating, 1661);
  EXPECT_EQ(lichess[0].themes, (std::vector<std::string>{"advantage", "short"}));
  const auto plain = Load(std::string("\"fen\",\"moves\",\"rating\"\r\n") + kMate);
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_TRUE(plain[0].game.moves.empty());
  EXPECT_EQ(plain[0].solution.size(), 1u);
}

TEST(PuzzlesTest, SkipsAndCountsWhatIsNoPuzzle) {
  SetLogLevel(LogLevel::kSilent);
  SkipCounter skipped;
  const auto puzzles =
      Load(std::string("FEN,Moves,Rating\n") + kMate +
               "nonsense,e2e4,1000\n6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1,d1d9,6\n" +
               "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1,d1d8,hard\n",
           {}, &skipped);
  SetLogLevel(LogLevel::kInfo);
  EXPECT_EQ(puzzles.size(), 1u);
  EXPECT_EQ(skipped.CountOf("no puzzle"), 3u);
  EXPECT_THAT(testing::MessageOf([] { Load("a,b,c\n1,2,3\n"); }),
              HasSubstr("FEN, Moves and Rating"));
  EXPECT_THAT(testing::MessageOf([] { Load("FEN,Moves,Rating\n"); }), HasSubstr("no puzzle"));
}

// Two mates in one: the line has one of them.
TEST(PuzzlesTest, AnotherMateSolvesByOneConventionAndNotByTheOther) {
  const std::string fen = "6k1/5ppp/8/8/8/8/5PPP/R2R2K1 w - - 0 1";
  const auto first = Load("FEN,Moves,Rating\n" + fen + ",a1a8,1000\n");
  const auto second = Load("FEN,Moves,Rating\n" + fen + ",d1d8,1000\n");
  const PuzzleResult a = Solve(first, "negamax?depth=1");
  const PuzzleResult b = Solve(second, "negamax?depth=1");
  EXPECT_EQ(a.all.any_mate + b.all.any_mate, 2);
  EXPECT_EQ(a.all.exact + b.all.exact, 1);
}

TEST(PuzzlesTest, CountsByBandAndThemeAndRates) {
  const auto puzzles = Load(testing::ReadWhole(testing::SourcePath("examples/arena/puzzles.csv")));
  ASSERT_EQ(puzzles.size(), 6u);
  const PuzzleResult good = Solve(puzzles, "negamax?depth=3");
  const PuzzleResult weak = Solve(puzzles, "random");
  EXPECT_GE(good.all.any_mate, 5);
  EXPECT_LT(weak.all.any_mate, good.all.any_mate);
  EXPECT_GT(good.rating->rating.rating, weak.rating->rating.rating);
  EXPECT_EQ(good.bands.at(600).puzzles, 2);
  EXPECT_EQ(good.themes.at("mate").puzzles, 3);
  const Json json = good.ToJson();
  for (const char* key : {"puzzles", "solved", "solved_any_mate", "accuracy", "rating"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_THAT(good.ToPage().Html(), HasSubstr("<svg"));
}

TEST(PuzzlesTest, AHeaderIsNotNeeded) {
  const std::string fen = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1";
  const auto plain = Load(fen + ",d1d8,700\n" + fen + ",d1d8,900\n");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].rating, 700);
  const auto lichess = Load("abcde," + fen + ",d1d8,700,80,90,100,mate mateIn1,url,\n");
  ASSERT_EQ(lichess.size(), 1u);
  EXPECT_EQ(lichess[0].id, "abcde");
  EXPECT_EQ(lichess[0].themes.size(), 2u);
  EXPECT_THAT(testing::MessageOf([&] { Load("a,b,c\n1,2,3\n"); }),
              HasSubstr("FEN, Moves and Rating"));
}

TEST(PuzzlesTest, TwoPlayersAreComparedPuzzleByPuzzle) {
  SkipCounter skipped;
  const auto puzzles = LoadPuzzles({testing::SourcePath("examples/arena/puzzles.csv"),
                                    testing::SourcePath("examples/arena/puzzles.csv")},
                                   {}, skipped);
  const PuzzleResult good = Solve(puzzles, "negamax?depth=3");
  const PuzzleResult weak = Solve(puzzles, "random");
  EXPECT_EQ(good.encounters.size(), puzzles.size());
  const PuzzleComparison comparison(good, weak);
  EXPECT_EQ(comparison.only_first - comparison.only_second, good.all.any_mate - weak.all.any_mate);
  EXPECT_GT(comparison.only_first, 0);
  EXPECT_GT(comparison.rating_beyond->rating, 0);
  EXPECT_EQ(PuzzleComparison(good, good).p_value, 1);
}

TEST(PuzzlesTest, TheOnePlyRuleIsOffUnlessAskedForAndStated) {
  const auto measure = [](const std::string& player, bool one_ply) {
    Asker asker({.player = player, .one_ply = one_ply}, 1);
    return asker.one_ply();
  };
  const std::string policy = testing::ModelPath("policy-small");
  EXPECT_EQ(measure(policy, false), false);
  EXPECT_EQ(measure(policy, true), true);
  EXPECT_EQ(measure(policy + "?one_ply=1", false), true);  // The name decides.
  EXPECT_EQ(measure("random", true), std::nullopt);
  PuzzleResult result;
  result.player = "x";
  result.one_ply = false;
  EXPECT_THAT(result.Text(), HasSubstr("One-ply rule: x off"));
  EXPECT_EQ(result.ToJson()["one_ply"], false);
}

TEST(PuzzlesTest, RealFilesAreReadWhole) {
  SKIP_WITHOUT(testing::DataFile("puzzles", ".csv"));
  for (const std::string& path : testing::DataFiles("puzzles", ".csv")) {
    const std::string text = testing::ReadWhole(path);
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    SkipCounter skipped;
    // All lines, but for a header.
    EXPECT_GE(LoadPuzzles({path}, {}, skipped).size() + 1, lines) << path;
    EXPECT_TRUE(skipped.empty()) << skipped.Text();
  }
}

std::vector<SuitePosition> Suite(const std::string& text) {
  const testing::TempFolder folder;
  WriteFileAtomically(folder.File("s.epd"), text);
  return LoadSuite({folder.File("s.epd")});
}

TEST(SuiteTest, ReadsMovesAndPoints) {
  const auto suite = Suite(
      "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - bm Rd8# Rd7; am Kf1; id \"A;B.012\";\n"
      "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - bm Rd8; c7 \"Rd8 Rd7\"; c8 \"100 5\"; c9 \"d1d8 d1d7\"; "
      "id "
      "\"STS(v1.0) X.005\";\n"
      "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - c0 \"Rd8=10, h3=2\"; id \"c.1\";\n");
  ASSERT_EQ(suite.size(), 3u);
  EXPECT_EQ(suite[0].best.size(), 2u);
  EXPECT_EQ(suite[0].avoid.size(), 1u);
  EXPECT_EQ(suite[0].id, "A;B.012");
  EXPECT_EQ(suite[1].most_points(), 100);
  EXPECT_EQ(suite[1].theme, "STS(v1.0) X");
  EXPECT_EQ(suite[2].points.size(), 2u);
}

TEST(SuiteTest, WrongLinesAreNamed) {
  const auto message = [](const std::string& text) {
    return testing::MessageOf([&] { Suite(text); });
  };
  const std::string fen = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - ";
  EXPECT_THAT(message("\n" + fen + "bm Rd9;\n"), HasSubstr("s.epd:2"));
  EXPECT_THAT(message(fen + "id \"x\";\n"), HasSubstr("neither bm nor am"));
  EXPECT_THAT(message(fen + "c8 \"1 2\"; c9 \"d1d8\";\n"), HasSubstr("2 points for 1 moves"));
}

TEST(SuiteTest, CountsSolvedPositionsAndPoints) {
  const auto suite = LoadSuite({testing::SourcePath("examples/arena/suite.epd")});
  Asker asker({.player = "negamax?depth=3"}, 1);
  const SuiteResult result = RunSuite(suite, asker, {.concurrency = 1}, {}, nullptr);
  EXPECT_EQ(result.all.positions, 4);
  EXPECT_EQ(result.all.solved, 4);
  EXPECT_EQ(result.themes.at("mate").solved, 2);
  EXPECT_EQ(result.ToJson()["most_points"], 10);
}

TEST(SuiteTest, RealSuitesAreReadWhole) {
  SKIP_WITHOUT(testing::DataFile("sts", ".epd"));
  const auto sts = LoadSuite(testing::DataFiles("sts", ".epd"));
  EXPECT_GT(sts.size(), 0u);
  for (const SuitePosition& position : sts) EXPECT_EQ(position.most_points(), 100) << position.id;
  EXPECT_GT(LoadSuite(testing::DataFiles("suites", ".epd")).size(), 0u);
}

}  // namespace
}  // namespace kibitz::arena
