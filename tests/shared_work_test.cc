// Commands of the ranks of a job, and of --shards: the same files as of one process, also after a
// rank was killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "oracles/engines/line_process.h"
#include "tests/support/job.h"
#include "tests/support/policy_rows.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::Joined;
using testing::Ran;
using testing::RanksByHand;
using testing::Words;

const std::string kProgram = testing::ProgramPath("kibitz");

// What is in a folder, or one file, by name.
std::map<std::string, std::string> Content(const std::string& path) {
  std::map<std::string, std::string> content;
  if (fs::is_regular_file(path)) content[""] = testing::ReadWhole(path);
  if (!fs::is_directory(path)) return content;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = fs::relative(entry.path(), path).string();
    if (entry.is_regular_file()) content[name] = testing::ReadWhole(entry.path().string());
  }
  return content;
}

void ExpectSame(const std::string& a, const std::string& b) {
  const auto expected = Content(a);
  const auto found = Content(b);
  ASSERT_FALSE(expected.empty()) << a;
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(found.contains(name)) << b << " has no " << name;
    EXPECT_TRUE(found.at(name) == bytes) << name << " differs in " << b;
  }
  EXPECT_EQ(expected.size(), found.size()) << b;
}

class SharedWorkTest : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_MPIRUN(); }

  std::string At(const std::string& name) const { return folder_.File(name); }
  // Expects success; standard output.
  std::string Run(int ranks, const Words& words) const {
    const Ran ran = testing::RunCommand(testing::UnderMpirun(ranks, Joined({kProgram}, words)));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }

  testing::TempFolder folder_;
};

class PrecomputeRanksTest : public SharedWorkTest {
 protected:
  void SetUp() override {
    SharedWorkTest::SetUp();
    testing::WriteEvaluations({.rows = 40'000, .positions = 16'000}, At("rows.parquet"),
                              At("rows.jsonl.zst"));
  }
  Words Precompute(const std::string& out, const Words& more = {}) const {
    return Joined({"policy", "precompute", At("rows.parquet"), "--out", At(out), "--threads", "1",
                   "--memory", "128M", "--json"},
                  more);
  }
};

TEST_F(PrecomputeRanksTest, GiveTheBytesOfOneProcess) {
  const std::string one = Run(1, Precompute("one"));
  const std::string three = Run(3, Precompute("three"));
  EXPECT_EQ(json::parse(one)["positions"], json::parse(three)["positions"]) << "one report";
  ExpectSame(At("one"), At("three"));
  Run(2, Precompute("two", {"--shards", "5", "--work", At("scratch")}));
  ExpectSame(At("one"), At("two"));
  EXPECT_TRUE(Content(At("scratch")).empty());
  EXPECT_EQ(Run(2, Precompute("two")), Run(1, Precompute("two"))) << "already complete";
  // An array job, joined by ranks.
  for (const char* shard : {"0", "1", "2"}) {
    Run(1, Precompute("shards", {"--shards", "3", "--shard", shard}));
  }
  Run(2, {"policy", "merge", At("shards"), "--out", At("merged"), "--memory", "128M"});
  ExpectSame(At("one"), At("merged"));
}

TEST_F(PrecomputeRanksTest, LinesAndPlanesToo) {
  const auto precompute = [&](const std::string& out) {
    return Words{"policy", "precompute", At("rows.jsonl.zst"),
                 "--out",  At(out),      "--threads",
                 "1",      "--format",   "planes",
                 "--rows", "9k",         "--memory",
                 "128M"};
  };
  Run(1, precompute("one"));
  Run(3, precompute("three"));
  ExpectSame(At("one"), At("three"));
}

TEST_F(PrecomputeRanksTest, AKilledRankEndsTheJobAndTheRetryGoesOn) {
  Run(1, Precompute("one"));
  int killed_in_time = 0;
  for (int i = 0; i < 5; ++i) {
    const int killed = i % 2;
    const std::string out = "killed" + std::to_string(i);
    const Words words = Precompute(out, {"--flush-seconds", "0.01"});
    {
      const RanksByHand job(2, Joined({kProgram}, words), folder_);
      while (!fs::exists(At(out) + "/work")) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(80 * i));
      const auto start = std::chrono::steady_clock::now();
      kill(job.child(killed), SIGKILL);
      const bool ended = job.Code(killed) == 0;
      const int other = job.Code(1 - killed);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
      if (!ended && other != 0) {
        ++killed_in_time;
        EXPECT_EQ(other, 1);
        const std::string name = "rank " + std::to_string(killed) + " ";
        EXPECT_THAT(job.Errors(1 - killed), HasSubstr(name));
      }
    }
    Run(i % 3 + 1, words);  // With any number of ranks.
    ExpectSame(At("one"), At(out));
  }
  EXPECT_GT(killed_in_time, 1);
}

// A file of one frame, which one rank unpacks for all: whoever is killed, another goes on.
TEST_F(SharedWorkTest, AKilledRankThatUnpacksForAll) {
  testing::WriteEvaluations({.rows = 400'000, .positions = 40'000}, At("rows.parquet"),
                            At("rows.jsonl.zst"));
  ASSERT_GT(fs::file_size(At("rows.jsonl.zst")), 8U << 20) << "too short to be cut";
  const auto precompute = [&](const std::string& out) {
    return Words{"policy",   "precompute", At("rows.jsonl.zst"), "--out", At(out), "--threads", "1",
                 "--memory", "128M",       "--flush-seconds",    "0.05"};
  };
  Run(1, precompute("one"));
  int killed_in_time = 0;
  for (int i = 0; i < 6; ++i) {
    const RanksByHand job(2, Joined({kProgram}, precompute("two")), folder_);
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + 150 * i));
    kill(job.child(i % 2), SIGKILL);
    killed_in_time += job.Code(i % 2) == -SIGKILL ? 1 : 0;
    const int other = job.Code(1 - i % 2);
    EXPECT_TRUE(other == 0 || other == 1) << other;
    EXPECT_THAT(job.Errors(1 - i % 2), ::testing::Not(HasSubstr("lines-"))) << "only of the kill";
  }
  EXPECT_GT(killed_in_time, 1);
  Run(3, precompute("two"));
  ExpectSame(At("one"), At("two"));
}

// As a full disk: writing fails beyond a size.
TEST_F(PrecomputeRanksTest, ARankThatCannotWriteEndsAll) {
  const RanksByHand job(2, Joined({kProgram}, Precompute("full")), folder_, [](int rank) {
    const rlimit limit = {100'000, 100'000};
    if (rank == 1) setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(job.Code(1), 1);
  EXPECT_EQ(job.Code(0), 1);
  EXPECT_THAT(job.Errors(0), HasSubstr("rank 1 "));
  EXPECT_THAT(job.Errors(0), HasSubstr("cannot write"));
  EXPECT_FALSE(fs::exists(At("full/manifest.json")));
  Run(1, Precompute("one"));
  Run(2, Precompute("full"));
  ExpectSame(At("one"), At("full"));
}

TEST_F(SharedWorkTest, TheGamesOf2048) {
  const auto generate = [&](const std::string& out, const Words& more = {}) {
    return Joined({"2048", "generate", "--games", "7", "--depth", "1", "--max-moves", "60",
                   "--threads", "1", "--json", "--out", At(out)},
                  more);
  };
  Run(1, generate("one"));
  EXPECT_EQ(json::parse(Run(3, generate("three")))["games"], 7);
  for (const char* shard : {"0", "1"}) Run(1, generate("two", {"--shards", "2", "--shard", shard}));
  for (const std::string name : {"one", "two", "three"}) {
    for (const auto& [file, bytes] : Content(At(name))) {  // These have times and paths.
      if (file.ends_with(".meta.json")) fs::remove(At(name) + "/" + file);
    }
    ExpectSame(At("one"), At(name));
  }
}

TEST_F(SharedWorkTest, Oracles) {
  if (oracles::FindProgram("stockfish").empty()) GTEST_SKIP() << "stockfish is not installed";
  const Words common = {"--engines", "1", "--nodes", "60", "--json"};
  const auto compare = [&](const Words& words, const std::string& out) {
    const auto to = [&](const std::string& name, const Words& more = {}) {
      return Joined(Joined(words, {"--out", At(name + out)}), more);
    };
    json one = json::parse(Run(1, to("one")));
    json three = json::parse(Run(3, to("three")));
    EXPECT_EQ(one["asked"], three["asked"]);
    EXPECT_EQ(one["rows"], three["rows"]);
    EXPECT_EQ(one["duplicates"], three["duplicates"]);
    ExpectSame(At("one" + out), At("three" + out));
    for (const char* shard : {"1", "0"}) Run(1, to("two", {"--shards", "2", "--shard", shard}));
    EXPECT_FALSE(fs::exists(At("two" + out)));
    EXPECT_EQ(json::parse(Run(1, to("two")))["asked"], 0);
    ExpectSame(At("one" + out), At("two" + out));
  };
  const std::string games = testing::SourcePath("examples/immortal.pgn");
  compare(Joined({"oracle", "variations", games, "--limit", "8", "--part-positions", "3"}, common),
          ".parquet");
  compare({"oracle", "evals", games, "--limit", "8", "--part-positions", "3", "--engines", "1",
           "--sessions", "nodes=60", "--json"},
          ".jsonl");
  compare(
      Joined({"oracle", "games", "--games", "5", "--part-games", "1", "--max-plies", "12"}, common),
      ".games.parquet");
}

class ArenaRanksTest : public SharedWorkTest {
 protected:
  Words To(const Words& words, const std::string& out, const Words& more = {}) const {
    return Joined(Joined(words, {"--concurrency", "1", "--json", "--out", At(out)}), more);
  }
  // Reports and games; each process has a journal of its own.
  void ExpectSameReports(const std::string& a, const std::string& b) const {
    for (const char* name : {"report.txt", "report.json", "report.html", "games.pgn"}) {
      EXPECT_EQ(testing::ReadWhole(At(a) + "/" + name), testing::ReadWhole(At(b) + "/" + name))
          << name << " of " << b;
    }
  }
};

TEST_F(ArenaRanksTest, AMatchOfManyProcessesHasTheReportOfOne) {
  const Words match = {"arena", "match", "negamax?depth=2", "random", "--games", "22"};
  const std::string one = Run(1, To(match, "one"));
  EXPECT_EQ(Run(8, To(match, "eight")), one);
  ExpectSameReports("one", "eight");
  for (const char* shard : {"2", "0", "1"}) {
    Run(1, To(match, "three", {"--shards", "3", "--shard", shard}));
  }
  EXPECT_FALSE(fs::exists(At("three/report.txt")));
  EXPECT_EQ(Run(1, To(match, "three")), one);
  ExpectSameReports("one", "three");
}

TEST_F(ArenaRanksTest, MatchesThatEndEarlyAndTournaments) {
  const Words sprt = {"arena",  "match", "negamax?depth=1", "random",
                      "--sprt", "0,100", "--seed",          "3"};
  EXPECT_EQ(Run(1, To(sprt, "sprt1")), Run(3, To(sprt, "sprt3")));
  ExpectSameReports("sprt1", "sprt3");
  const Ran shard =
      testing::RunCommand(Joined({kProgram}, To(sprt, "sprt2", {"--shards", "2", "--shard", "0"})));
  EXPECT_EQ(shard.code, 2);
  EXPECT_THAT(shard.err, HasSubstr("mpirun"));
  const Words tournament = {"arena",           "tournament", "random", "negamax?depth=1",
                            "negamax?depth=2", "--rounds",   "2"};
  EXPECT_EQ(Run(1, To(tournament, "t1")), Run(4, To(tournament, "t4")));
  ExpectSameReports("t1", "t4");
  const Words puzzles = {"arena", "puzzles", testing::SourcePath("examples/arena/puzzles.csv"),
                         "--player", "negamax?depth=2"};
  EXPECT_EQ(Run(1, To(puzzles, "p1")), Run(2, To(puzzles, "p2")));
}

TEST_F(ArenaRanksTest, AKilledRankEndsTheMatchAndItGoesOn) {
  const Words match = {"arena", "match", "negamax?depth=2", "negamax?depth=2", "--games", "24"};
  Run(1, To(match, "one"));
  {
    const RanksByHand job(3, Joined({kProgram}, To(match, "killed")), folder_);
    const std::string journal = At("killed/journal-0002-of-0003.jsonl");
    while (!fs::exists(journal) || Content(journal)[""].find("\"number\"") == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(job.child(2), SIGKILL);
    EXPECT_EQ(job.Code(2), -SIGKILL);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(job.Code(rank), 1);
      EXPECT_THAT(job.Errors(rank), HasSubstr("rank 2 "));
    }
  }
  Run(2, To(match, "killed"));
  ExpectSameReports("one", "killed");
}

}  // namespace
}  // namespace kibitz
