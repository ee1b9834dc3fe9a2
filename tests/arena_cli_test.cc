// The arena's commands as their users run them: kills at any moment, wrong options, reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/random.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;
using testing::TempFolder;

std::vector<std::string> Words(std::vector<std::string> words) {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "arena"});
  return words;
}

Ran Arena(const std::vector<std::string>& words) { return testing::RunCommand(Words(words)); }

json Answer(std::vector<std::string> words) {
  words.insert(words.end(), {"--json", "--quiet"});
  const Ran ran = Arena(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

// Starts the command and kills it after so many milliseconds. Whether it was still running.
bool RunAndKill(const std::vector<std::string>& words, uint64_t milliseconds) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(ArenaCliTest, AMatchKilledAnywhereEndsWithTheSameReport) {
  const TempFolder folder;
  const auto words = [&](const std::string& out) {
    return Words({"match", "negamax?depth=2&temperature=1", "negamax?depth=1&temperature=1",
                  "--games", "60", "--openings", "named", "--seed", "7", "--out",
                  folder.File(out)});
  };
  const Ran whole = testing::RunCommand(words("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  Rng rng({.seed = 1, .purpose = Purpose("kills")});
  int killed = 0;
  for (int i = 0; i < 8; ++i) {
    killed += RunAndKill(words("killed"), 30 + rng.Below(250)) ? 1 : 0;
  }
  EXPECT_GT(killed, 0);
  const Ran resumed = testing::RunCommand(words("killed"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
  for (const char* name : {"report.txt", "report.json", "report.html", "games.pgn"}) {
    EXPECT_EQ(testing::ReadWhole(folder.File("killed/" + std::string(name))),
              testing::ReadWhole(folder.File("whole/" + std::string(name))))
        << name;
  }
}

TEST(ArenaCliTest, AMatchReportsWhatTheFieldExpects) {
  const json report = Answer({"match", "negamax?depth=2", "random", "--games", "400", "--sprt",
                              "0,50", "--openings", "start"});
  for (const char* key : {"wins", "draws", "losses", "elo", "elo_error", "nelo", "los",
                          "pentanomial", "llr", "draw_ratio", "pairs_ratio"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  EXPECT_EQ(report["sprt"]["decision"], "elo1");
  EXPECT_LT(report["games"], 400);
}

TEST(ArenaCliTest, WrongOptionsAreExplained) {
  EXPECT_EQ(Arena({"match", "random"}).code, 2);
  EXPECT_THAT(Arena({"match", "random", "random", "--sprt", "5,0"}).err, HasSubstr("below elo1"));
  EXPECT_THAT(Arena({"match", "random", "rendom"}).err, HasSubstr("rendom"));
  EXPECT_THAT(Arena({"match", "random", "random", "--clock", "fast"}).err, HasSubstr("10+0.1"));
  EXPECT_THAT(Arena({"match", "random", "random", "--openings", "nowhere.pgn"}).err,
              HasSubstr("no such file"));
  const TempFolder folder;
  const std::vector<std::string> words = {"match",      "random", "random", "--games",       "2",
                                          "--openings", "start",  "--out",  folder.File("m")};
  ASSERT_EQ(Arena(words).code, 0);
  std::vector<std::string> other = words;
  other.insert(other.end(), {"--seed", "5"});
  EXPECT_THAT(Arena(other).err, HasSubstr("/seed is '1' there and '5' now"));
}

TEST(ArenaCliTest, ASeriesPlaysEveryOpeningTwiceAndTracesIt) {
  const TempFolder folder;
  const json report = Answer({"series", "negamax?depth=1", "random", "--openings", "named",
                              "--max-openings", "5", "--save-trace", folder.File("t.jsonl")});
  EXPECT_EQ(report["games"], 10);
  ASSERT_EQ(report["by_opening"].size(), 5u);
  for (const json& opening : report["by_opening"]) {
    EXPECT_EQ(
        opening["wins"].get<int>() + opening["draws"].get<int>() + opening["losses"].get<int>(), 2);
  }
  EXPECT_EQ(report["by_player"][1]["losses"], report["wins"]);
  std::istringstream trace(testing::ReadWhole(folder.File("t.jsonl")));
  int moves = 0;
  for (std::string line; std::getline(trace, line); ++moves) {
    const json move = json::parse(line);
    EXPECT_TRUE(move["probabilities"].contains(move["move"])) << line;
    for (const json& arrow : move["arrows"]) EXPECT_GE(arrow["probability"], 0.2);
  }
  EXPECT_EQ(moves, report["plies"]);
  const json fen = Answer({"series", "random", "random", "--start-fen",
                           "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1", "--rounds", "2"});
  EXPECT_EQ(fen["games"], 4);
}

TEST(ArenaCliTest, ATournamentRanksPlayers) {
  const json report = Answer({"tournament", "random", "negamax?depth=1", "negamax?depth=2",
                              "--rounds", "6", "--openings", "named"});
  ASSERT_EQ(report["players"].size(), 3u);
  EXPECT_EQ(report["games"], 36);
  EXPECT_EQ(report["players"][2]["name"], "random");
  EXPECT_GT(report["players"][0]["rating"], report["players"][1]["rating"]);
  const json gauntlet =
      Answer({"tournament", "random", "negamax?depth=1", "negamax?depth=2", "--kind", "gauntlet",
              "--rounds", "3", "--openings", "named", "--anchor", "800"});
  EXPECT_EQ(gauntlet["games"], 12);
}

TEST(ArenaCliTest, ALadderFindsARating) {
  if (!testing::Exists("/usr/games/stockfish")) GTEST_SKIP() << "no Stockfish here";
  const TempFolder folder;
  const json report =
      Answer({"ladder", "negamax?depth=2", "--max-games", "16", "--batch", "2", "--engine-time",
              "5", "--openings", "named", "--max-plies", "120", "--out", folder.File("ladder")});
  EXPECT_GE(report["games"], 4);
  EXPECT_TRUE(report.contains("rating"));
  EXPECT_THAT(testing::ReadWhole(folder.File("ladder/report.html")), HasSubstr("<svg"));
}

TEST(ArenaCliTest, PuzzlesAndSuitesResume) {
  const TempFolder folder;
  const std::string puzzles = testing::SourcePath("examples/arena/puzzles.csv");
  const std::string suite = testing::SourcePath("examples/arena/suite.epd");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"puzzles", puzzles}, {"positions", suite}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--player", "negamax?depth=2", "--out", folder.File(words[0])});
    const Ran first = Arena(all);
    ASSERT_EQ(first.code, 0) << first.err;
    const Ran again = Arena(all);
    EXPECT_EQ(again.out, first.out);
    all[all.size() - 3] = "negamax?depth=1";
    EXPECT_THAT(Arena(all).err, HasSubstr("made with other options"));
  }
}

// Legal moves only, so it is at least as right as 'policy eval', which counts illegal ones.
TEST(ArenaCliTest, LabelsOfADataSetAreMetAsInPolicyEval) {
  const TempFolder folder;
  const std::string kibitz = testing::ProgramPath("kibitz");
  const std::string rows =
      testing::SourcePath("tests/golden/policy/rows/chess_position_evaluations.parquet");
  const std::string model = testing::ModelPath("policy-small");
  ASSERT_EQ(
      testing::RunCommand({kibitz, "policy", "precompute", rows, "--out", folder.File("d")}).code,
      0);
  const Ran eval = testing::RunCommand(
      {kibitz, "policy", "eval", folder.File("d"), "--model", model, "--split", "train", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const json expected = json::parse(eval.out);
  const json found = Answer({"positions", "--data", folder.File("d"), "--split", "train",
                             "--positions", "0", "--player", model + "?one_ply=0"});
  EXPECT_EQ(found["positions"], expected["positions"]);
  for (const auto& [ours, theirs] : {std::pair{"top1", "move_acc"}, {"top5", "top5_acc"}}) {
    const double value = found[ours]["value"];
    EXPECT_GE(value, expected[theirs]["value"]);
    EXPECT_LT(value, expected[theirs]["value"].get<double>() + 0.05);
  }
  EXPECT_LT(found["cross_entropy"], expected["loss"]["value"]);
  EXPECT_GE(found["calibration"].size(), 5u);
}

TEST(ArenaCliTest, ThinkingIsMeasured) {
  const json report = Answer({"thinking", "--model", testing::GoldenPath("decoder/tiny.pt"),
                              "--fens", testing::SourcePath("examples/arena/suite.epd"), "--judge",
                              "negamax?depth=2", "--variations", "1,2", "--times", "10"});
  EXPECT_EQ(report["positions"], 4);
  EXPECT_EQ(report["budgets"].size(), 3u);
  EXPECT_EQ(report["instinct_better"].get<int>() + report["thinking_better"].get<int>() +
                report["equal"].get<int>(),
            4);
}

// A search with a network evaluates several lines a position, as Parquet and as JSON lines.
TEST(ArenaCliTest, ThinkingIsJudgedByRecordedScores) {
  const TempFolder folder;
  const auto measure = [&](const std::string& name) {
    const Ran ran = testing::RunCommand(
        {testing::ProgramPath("kibitz"), "oracle", "evals",
         testing::SourcePath("examples/immortal.pgn"), "--net", testing::ModelPath("policy-small"),
         "--sessions", "nodes=30,multipv=4", "--limit", "12", "--out", folder.File(name)});
    EXPECT_EQ(ran.code, 0) << ran.err;
    json report = Answer({"thinking", "--model", testing::GoldenPath("decoder/tiny.pt"),
                          "--teacher", folder.File(name), "--variations", "1,2"});
    EXPECT_EQ(report["judge"], folder.File(name));
    report.erase("judge");
    for (json& budget : report["budgets"]) budget.erase("milliseconds");
    return report;
  };
  const json rows = measure("e.parquet");
  EXPECT_EQ(rows["positions"], 12);
  EXPECT_EQ(rows, measure("e.jsonl.zst"));
}

TEST(ArenaCliTest, ABookIsBalancedAndTheSameForTheSameSeed) {
  const TempFolder folder;
  const auto make = [&](const std::string& name) {
    const json report = Answer({"openings", folder.File(name), "--positions", "12", "--engine",
                                "negamax?depth=2", "--max-cp", "60"});
    EXPECT_EQ(report["positions"], 12);
    return testing::ReadWhole(folder.File(name));
  };
  const std::string book = make("a.epd");
  EXPECT_EQ(make("b.epd"), book);
  const json report = Answer({"match", "random", "random", "--games", "24", "--openings",
                              folder.File("a.epd"), "--max-plies", "4"});
  EXPECT_EQ(report["games"], 24);
}

}  // namespace
}  // namespace kibitz
