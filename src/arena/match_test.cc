// Games and matches with real players, and with engines scripted in shell that break in every way.
#include "arena/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/atomic_file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "games/chess/pgn.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

using chess::GameResult;
using ::testing::HasSubstr;

// An engine that follows UCI but for the shell `cases` that come first. It plays a2a3 and a7a6.
class ScriptedPlayer {
 public:
  explicit ScriptedPlayer(const std::string& cases) {
    WriteFileAtomically(path(), "while read -r line; do\ncase \"$line\" in\n" + cases + R"(
uci) echo 'id name Mock'; echo uciok;;
isready) echo readyok;;
quit) exit 0;;
esac
done
)");
  }
  std::string name() const { return "engine:/bin/sh " + path(); }

 private:
  std::string path() const { return folder_.File("engine.sh"); }
  testing::TempFolder folder_;
};

MatchResult Match(const std::vector<std::string>& names, int64_t games, GameSetup setup = {}) {
  setup.command = "match";
  setup.contenders.clear();
  for (const std::string& name : names) setup.contenders.push_back({.name = name});
  setup.openings.source = "named";
  GameRun run(setup);
  MatchResult result = RunMatch(run, {.games = games}, nullptr);
  run.WriteReport(result.Text(), result.ToJson(), result.ToPage());
  return result;
}

class QuietTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kSilent); }
  void TearDown() override { SetLogLevel(LogLevel::kInfo); }
};

TEST(MatchTest, IsTheSameOnAnyNumberOfThreads) {
  const auto report = [](int threads) {
    return Match({"negamax?depth=1&temperature=1", "random"}, 30,
                 {.rules = {.max_plies = 60}, .run = {.seed = 4, .concurrency = threads}})
        .ToJson()
        .dump();
  };
  const std::string one = report(1);
  EXPECT_EQ(report(3), one);
  EXPECT_THAT(one, HasSubstr("\"pentanomial\""));
}

TEST(MatchTest, ZeroHasNoMinus) {
  EXPECT_EQ(ErrorText(-0.0, 0), "+0.0 ± 0.0");
  EXPECT_EQ(ErrorText(-0.04, 3), "+0.0 ± 3.0");
  EXPECT_EQ(ErrorText(-0.06, 3), "-0.1 ± 3.0");
}

TEST(MatchTest, StatesWhetherTheOnePlyRuleWasOn) {
  const std::string policy = testing::ModelPath("policy-small");
  const auto play = [&](bool one_ply) {
    GameSetup setup{.command = "match",
                    .contenders = {{.name = policy, .one_ply = one_ply}, {.name = "random"}},
                    .openings = {.source = "named"},
                    .rules = {.max_plies = 4}};
    GameRun run(setup);
    return RunMatch(run, {.games = 2}, nullptr);
  };
  EXPECT_THAT(play(true).Text(), HasSubstr("One-ply rule: " + policy + " on, random has none"));
  EXPECT_EQ(play(true).ToJson()["one_ply"].dump(), "[true,null]");
  EXPECT_EQ(play(false).ToJson()["one_ply"].dump(), "[false,null]");
}

// What a resumed run reads back tells nothing of how long the rest takes.
TEST(MatchTest, KeptGamesAreNotInTheRateOfProgress) {
  const testing::TempFolder folder;
  const auto play = [&](int64_t games) {
    std::vector<std::string> lines;
    Progress::Options options;
    options.mode = Progress::Options::Mode::kLines;
    options.line_seconds = 0;
    options.write = [&](const std::string& text, bool) { lines.push_back(text); };
    Progress progress("games", static_cast<uint64_t>(games), options);
    GameSetup setup{.command = "match",
                    .contenders = {{.name = "random"}, {.name = "random"}},
                    .openings = {.source = "named"},
                    .rules = {.max_plies = 4},
                    .run = {.out = folder.File("m")}};
    GameRun run(setup);
    RunMatch(run, {.games = games}, &progress);
    progress.Finish();
    return lines;
  };
  EXPECT_THAT(play(20).back(), ::testing::StartsWith("20 games in"));
  const std::vector<std::string> resumed = play(30);
  EXPECT_THAT(resumed[5], HasSubstr("0/s"));
  EXPECT_THAT(resumed.back(), ::testing::StartsWith("10 games in"));
}

TEST(MatchTest, CountsAddUp) {
  const MatchResult result =
      Match({"negamax?depth=1&temperature=2", "random"}, 41, {.rules = {.max_plies = 40}});
  const Tally& tally = result.tally;
  EXPECT_EQ(tally.games().games(), 41);
  EXPECT_EQ(tally.pairs().pairs(), 20);
  EXPECT_EQ(tally.As(chess::Color::kWhite).games(), 21);
  EXPECT_EQ(tally.As(chess::Color::kBlack).games(), 20);
  int64_t ends = 0;
  for (const auto& [reason, count] : tally.ends()) ends += count;
  EXPECT_EQ(ends, 41);
  EXPECT_GT(tally.games().wins, tally.games().losses);
}

TEST(MatchTest, AKillAnywhereLeadsToTheSameReportAndGames) {
  const testing::TempFolder folder;
  const auto play = [&](const std::string& out) {
    const MatchResult result =
        Match({"negamax?depth=1&temperature=2", "random"}, 12,
              {.rules = {.max_plies = 30}, .run = {.concurrency = 2, .out = out}});
    return result.Text() + result.ToJson().dump();
  };
  const std::string whole_out = folder.File("whole");
  const std::string report = play(whole_out);
  const std::string journal = testing::ReadWhole(whole_out + "/journal.jsonl");
  const std::string pgn = testing::ReadWhole(whole_out + "/games.pgn");
  for (size_t size = 0; size < journal.size(); size += journal.size() / 13) {
    const std::string out = folder.File("cut" + std::to_string(size));
    std::filesystem::create_directories(out);
    std::ofstream(out + "/journal.jsonl", std::ios::binary) << journal.substr(0, size);
    EXPECT_EQ(play(out), report) << size;
    EXPECT_EQ(testing::ReadWhole(out + "/games.pgn"), pgn) << size;
    EXPECT_EQ(testing::ReadWhole(out + "/report.html"),
              testing::ReadWhole(whole_out + "/report.html"));
  }
}

TEST(MatchTest, AJournalOfOtherOptionsIsRefused) {
  const testing::TempFolder folder;
  GameSetup setup{.rules = {.max_plies = 10}, .run = {.out = folder.File("m")}};
  Match({"random", "random"}, 2, setup);
  setup.rules.max_plies = 12;
  EXPECT_THAT(testing::MessageOf([&] {
                Match({"random", "random"}, 2, setup);
              }),
              HasSubstr("/rules/max_plies is '10' there and '12' now"));
  setup.run.fresh = true;
  EXPECT_EQ(Match({"random", "random"}, 2, setup).tally.games().games(), 2);
}

TEST(MatchTest, GamesAreReadBackFromPgn) {
  const testing::TempFolder folder;
  Match({"negamax?depth=2", "random"}, 6, {.pgn = folder.File("games.pgn")});
  const std::string text = testing::ReadWhole(folder.File("games.pgn"));
  chess::PgnReader reader(chess::TextSource(text));
  chess::PgnGame game;
  int games = 0;
  for (auto read = reader.Next(game); read != chess::PgnRead::kEnd; read = reader.Next(game)) {
    ASSERT_EQ(read, chess::PgnRead::kGame) << reader.problem().reason;
    ++games;
    EXPECT_NE(game.result, GameResult::kUnknown);
    ASSERT_FALSE(game.notes.empty());
    EXPECT_TRUE(chess::EvalOf(game.notes.back().comment)) << game.notes.back().comment;
  }
  EXPECT_EQ(games, 6);
}

TEST(MatchTest, SprtEndsItAtOnceOnExtremeBounds) {
  GameSetup setup{.command = "match",
                  .contenders = {{.name = "random"}, {.name = "negamax?depth=1"}},
                  .openings = {.source = "named"}};
  GameRun run(setup);
  const MatchResult result =
      RunMatch(run, {.games = 10000, .sprt = SprtOptions{.elo0 = -1500, .elo1 = -500}}, nullptr);
  EXPECT_LE(result.tally.games().games(), 140);
  EXPECT_EQ(DecisionOf(result.llr, *result.sprt), SprtDecision::kElo0);
  EXPECT_THAT(result.Text(), HasSubstr("elo0 accepted"));
}

TEST(MatchTest, TemperatureByColour) {
  const Contender contender{.name = "negamax?depth=1&temperature=3", .temperature = {0.5, {}}};
  EXPECT_EQ(contender.NameAs(chess::Color::kWhite), "negamax?depth=1&temperature=0.5");
  EXPECT_EQ(contender.NameAs(chess::Color::kBlack), "negamax?depth=1&temperature=3");
  EXPECT_THAT(testing::MessageOf([] {
                CheckContenders({{.name = "random", .temperature = {1, 1}}});
              }),
              HasSubstr("temperature"));
}

TEST(GameTest, ADrawCountsAtTheLimitAndClaimsAreAnOption) {
  // Knights go out and back: the position occurs a third time after 8 plies.
  const ScriptedPlayer shuffler(
      "position*) set -- $line; n=$#; if [ $n -le 3 ]; then m=g1f3; else last=$(eval echo "
      "\\${$n}); "
      "case $last in g1f3) m=g8f6;; g8f6) m=f3g1;; f3g1) m=f6g8;; *) m=g1f3;; esac; fi;;\n"
      "go*) echo \"info depth 1 score cp 0 pv $m\"; echo \"bestmove $m\";;");
  GameRules rules{.max_plies = 100};
  PlayerTable table({{.name = shuffler.name()}, {.name = shuffler.name()}});
  EXPECT_EQ(PlayGame({}, rules, table, {})->reason, "fivefold repetition");
  rules.draw_claims = true;
  const auto claimed = PlayGame({}, rules, table, {});
  EXPECT_EQ(claimed->reason, "threefold repetition");
  EXPECT_EQ(claimed->game.moves.size(), 8u);
  rules.max_plies = 5;
  EXPECT_EQ(PlayGame({}, rules, table, {})->reason, "maximum length");
  rules = {.adjudication = {.draw_score = 10, .draw_moves = 2, .draw_from = 1}};
  const auto adjudicated = PlayGame({}, rules, table, {});
  EXPECT_EQ(adjudicated->reason, "adjudication");
  EXPECT_EQ(adjudicated->result, GameResult::kDraw);
  EXPECT_EQ(adjudicated->game.moves.size(), 4u);
}

TEST_F(QuietTest, BrokenEnginesLoseAndTheMatchGoesOn) {
  const struct {
    const char* what;
    std::string cases;
    const char* reason;
  } engines[] = {
      {"crash", "go*) exit 3;;", "fails"},
      {"illegal", "go*) echo 'bestmove e2e5';;", "fails"},
      {"none", "go*) echo 'bestmove (none)';;", "fails"},
      {"hang", "go*) ;;", "time"},
      {"flood", "go*) while :; do echo 'info string flood'; done;;", "fails"},
  };
  for (const auto& engine : engines) {
    const ScriptedPlayer broken(engine.cases);
    const MatchResult result =
        Match({broken.name(), "random"}, 2,
              {.rules = {.limits = {.clock = "0.3+0", .margin = 50}}, .run = {.concurrency = 1}});
    EXPECT_EQ(result.tally.games().losses, 2) << engine.what << result.Text();
  }
}

TEST_F(QuietTest, AnEngineThatBreaksOnceIsStartedAgain) {
  const testing::TempFolder folder;
  // Crashes in its first life only.
  const ScriptedPlayer once("go*) if [ ! -e " + folder.File("died") + " ]; then touch " +
                            folder.File("died") + "; exit 3; fi; echo 'bestmove 0000';;");
  PlayerTable table({{.name = once.name()}, {.name = "random"}});
  const auto first = PlayGame({}, {}, table, {});
  EXPECT_EQ(first->result, GameResult::kBlackWins);
  EXPECT_TRUE(first->failed);
  EXPECT_THAT(first->reason, HasSubstr("code 3"));
  const auto second = PlayGame({}, {}, table, {});
  EXPECT_THAT(second->reason, HasSubstr("White fails"));  // Alive again, and wrong in another way.
  EXPECT_THAT(second->reason, ::testing::Not(HasSubstr("code 3")));
}

TEST_F(QuietTest, TimeIsWatched) {
  const ScriptedPlayer slow("go*) sleep 0.4; echo 'bestmove a2a3';;");
  PlayerTable table({{.name = slow.name()}, {.name = "random"}});
  const auto game = PlayGame({}, {.limits = {.clock = "0.1+0", .margin = 10}}, table, {});
  EXPECT_EQ(game->reason, "White forfeits on time");
  EXPECT_EQ(game->result, GameResult::kBlackWins);
  const auto patient = PlayGame({}, {.limits = {.clock = "30"}, .max_plies = 1}, table, {});
  EXPECT_EQ(patient->result, GameResult::kDraw);
}

TEST_F(QuietTest, AGameCanBeAbandoned) {
  const ScriptedPlayer silent("go*) ;;\nstop) echo 'bestmove a2a3';;");
  PlayerTable table({{.name = silent.name()}, {.name = "random"}});
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  EXPECT_FALSE(PlayGame({}, {}, table, stop.get_token()));
}

TEST(ClockTest, IsReadInSeconds) {
  EXPECT_EQ(ParseClock("10+0.1")->base, 10000);
  EXPECT_EQ(ParseClock("10+0.1")->increment, 100);
  EXPECT_EQ(ParseClock("1.5")->base, 1500);
  for (const char* text : {"", "x", "1+2+3", "-1", "0", "1+", "nan"}) {
    EXPECT_THAT(ParseClock(text).reason(), HasSubstr("10+0.1")) << text;
  }
}

}  // namespace
}  // namespace kibitz::arena
