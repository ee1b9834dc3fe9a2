// Every kind of call that can fail does so once, in turn, in every long command: the command exits
// with a message, nothing half-written stands under a final name, and the same command then gives
// the same bytes as one that never failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "io/bytes/fingerprint.h"
#include "io/tables/parquet.h"
#include "io/weights/torch_file.h"
#include "tests/support/child.h"
#include "tests/support/small_runs.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using testing::ReadWhole;
using testing::SmallRuns;
using Words = std::vector<std::string>;

struct LongCommand {
  std::string name;
  std::function<Words(const SmallRuns&, const std::string& out)> words;
  std::function<std::string(const std::string& path)> content;  // What must be the same.
  // Throws or fails when something half-written stands under a final name.
  std::function<void(const std::string& whole, const std::string& path)> expect_intact = {};
  Words again = {};         // Added by the second call.
  size_t faults = 6;        // Of each kind, unless all.
  std::string server = {};  // The program that runs in the end; it is loaded once. "": each time.
};

// Some faults in 'make test', all in 'make torture'.
bool AllFaults() { return std::getenv("KIBITZ_ALL_FAULTS") != nullptr; }

struct Done {
  int code = 0;
  std::string err;
};

Done RunOnce(const Words& words, const SmallRuns& runs, const Words& environment = {}) {
  static std::atomic<int> number = 0;
  const std::string err = runs.File(fmt::format("err{}.txt", number++));
  Child child(words, {.err = err, .environment = environment});
  Done done;
  done.code = child.Wait();
  done.err = ReadWhole(err);
  fs::remove(err);
  return done;
}

std::string Preload() {
  return "LD_PRELOAD=" + testing::ProgramPath("tests/libkibitz_fault_shim.so");
}

// Runs a command with one fault. With any but kNoFault the file kCounts tells how many calls there
// were.
using Runner = std::function<Done(Words words, const std::string& fault)>;
constexpr const char* kNoFault = "-";
constexpr const char* kCounts = "counts.txt";

Runner StartEachTime(const SmallRuns& runs) {
  return [&runs](const Words& words, const std::string& fault) {
    if (fault == kNoFault) return RunOnce(words, runs);
    return RunOnce(words, runs,
                   {Preload(), "KIBITZ_FAULT=" + fault, "KIBITZ_FAULT_LOG=" + runs.File(kCounts)});
  };
}

// A program that the shim loads once and forks for each run: loading libtorch takes four times as
// long as a small training.
class Server {
 public:
  Server(const SmallRuns& runs, const std::string& program)
      : program_(program),
        folder_(runs.File(fmt::format("server{}", number_++))),
        child_((Prepare(), Words{program}),
               {.in = folder_ + "/in",
                .out = folder_ + "/out",
                .environment = {Preload(), "KIBITZ_FAULT_SERVER=1",
                                "KIBITZ_FAULT_LOG=" + runs.File(kCounts)}}),
        requests_(folder_ + "/in"),
        answers_(folder_ + "/out") {}

  Done Run(Words words, const std::string& fault) {
    words[0] = program_;
    const std::string err = folder_ + "/err.txt";
    fs::remove(err);
    requests_ << fmt::format("{}\t{}\t{}\n", fault, err, fmt::join(words, "\t")) << std::flush;
    Done done{.code = -1, .err = {}};
    answers_ >> done.code;
    done.err = ReadWhole(err);
    return done;
  }

 private:
  void Prepare() {
    fs::create_directories(folder_);
    for (const char* name : {"/in", "/out"}) {
      CHECK(mkfifo((folder_ + name).c_str(), 0600) == 0);
    }
  }

  static inline std::atomic<int> number_ = 0;
  std::string program_;
  std::string folder_;
  Child child_;
  std::ofstream requests_;
  std::ifstream answers_;
};

Runner RunnerOf(const LongCommand& command, const SmallRuns& runs) {
  if (command.server.empty()) return StartEachTime(runs);
  const auto server = std::make_shared<Server>(runs, command.server);
  return
      [server](const Words& words, const std::string& fault) { return server->Run(words, fault); };
}

std::map<std::string, long> CountCalls(const Words& words, const SmallRuns& runs,
                                       const Runner& run) {
  const Done done = run(words, "count");  // No kind of call.
  EXPECT_EQ(done.code, 0) << done.err;
  std::map<std::string, long> counts;
  std::ifstream in(runs.File(kCounts));
  std::string kind;
  for (long count = 0; in >> kind >> count;) counts[kind] = count;
  return counts;
}

// Which of `count` calls fail: the first and the last, and others spread between.
std::vector<long> Chosen(long count, size_t most) {
  std::vector<long> numbers;
  const long taken = std::min(count, static_cast<long>(most));
  for (long i = 0; i < taken; ++i) {
    numbers.push_back(taken == 1 ? 1 : 1 + i * (count - 1) / (taken - 1));
  }
  return numbers;
}

// One call fails, the next start goes on. Whether the failure ended the command.
bool ExpectSurvives(const LongCommand& command, const SmallRuns& runs, const Runner& run,
                    const std::string& fault, const std::string& expected) {
  SCOPED_TRACE(fault);
  const std::string out = "out-" + fault;
  Words words = command.words(runs, out);
  const Done failed = run(words, fault);
  EXPECT_TRUE(failed.code == 0 || failed.code == 1) << failed.code << ": " << failed.err;
  if (failed.code != 0) {
    EXPECT_FALSE(failed.err.empty());
    if (!fault.starts_with("alloc") && !fault.starts_with("mmap")) {
      EXPECT_THAT(failed.err, ::testing::HasSubstr(runs.path()));
    }
    if (command.expect_intact) command.expect_intact(runs.File("whole"), runs.File(out));
    words.insert(words.end(), command.again.begin(), command.again.end());
    const Done resumed = run(words, kNoFault);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
  }
  EXPECT_TRUE(command.content(runs.File(out)) == expected);
  fs::remove_all(runs.File(out));
  return failed.code != 0;
}

void ExpectSurvives(const LongCommand& command) {
  const SmallRuns runs;
  const Runner first = RunnerOf(command, runs);
  const Done sound = first(command.words(runs, "whole"), kNoFault);
  ASSERT_EQ(sound.code, 0) << sound.err;
  const std::string expected = command.content(runs.File("whole"));
  Words faults;
  for (const auto& [kind, count] : CountCalls(command.words(runs, "counted"), runs, first)) {
    for (long number : Chosen(count, AllFaults() ? static_cast<size_t>(count) : command.faults)) {
      faults.push_back(kind + ":" + std::to_string(number));
    }
  }
  std::atomic<size_t> next = 0;
  std::atomic<int> failures = 0;
  const auto work = [&] {
    const Runner run = RunnerOf(command, runs);
    for (size_t i = next++; i < faults.size(); i = next++) {
      if (ExpectSurvives(command, runs, run, faults[i], expected)) ++failures;
    }
  };
  {
    std::vector<std::jthread>
        others;  // CTest runs other tests besides unless all faults are asked.
    for (int i = 1; i < (AllFaults() ? HardwareThreads() : 1); ++i) others.emplace_back(work);
    work();
  }
  std::cout << command.name << ": " << faults.size() << " faults, " << failures << " failures\n";
  EXPECT_GT(failures, 0);
}

std::string WholeFolder(const std::string& path) {
  auto fingerprint = io::FingerprintOf(path);
  fingerprint.erase("name");
  return fingerprint.dump();
}

std::string SomeFiles(const std::string& folder, const std::string& ending) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) all[name] = ReadWhole(entry.path());
  }
  std::string text;
  for (const auto& [name, bytes] : all) text += name + "\n" + bytes;
  return text.empty() ? "nothing" : text;
}

// Files of this ending in the folder itself are whole.
auto WholeFiles(const std::string& ending) {
  return [ending](const std::string& whole, const std::string& path) {
    if (!fs::exists(path)) return;
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file() || !name.ends_with(ending)) continue;
      EXPECT_TRUE(ReadWhole(entry.path()) == ReadWhole(whole + "/" + name)) << name;
    }
  };
}

TEST(FaultTest, Precompute) {
  ExpectSurvives(
      {.name = "policy precompute",
       .words = [](const SmallRuns& runs, const std::string& out) { return runs.Precompute(out); },
       .content = WholeFolder,
       .expect_intact = WholeFiles(".npy")});
}

TEST(FaultTest, OracleGames) {
  ExpectSurvives({.name = "oracle games",
                  .words =
                      [](const SmallRuns& runs, const std::string& out) {
                        fs::create_directories(runs.File(out));
                        return runs.OracleGames(out + "/a.parquet");
                      },
                  .content = [](const std::string& path) { return SomeFiles(path, ".parquet"); },
                  .expect_intact = WholeFiles("a.parquet")});
}

TEST(FaultTest, OracleVariations) {
  ExpectSurvives({.name = "oracle variations",
                  .words =
                      [](const SmallRuns& runs, const std::string& out) {
                        fs::create_directories(runs.File(out));
                        return runs.OracleVariations(out + "/a.parquet");
                      },
                  .content = [](const std::string& path) { return SomeFiles(path, ".parquet"); },
                  .expect_intact = WholeFiles("a.parquet")});
}

TEST(FaultTest, OracleEvals) {
  ExpectSurvives({.name = "oracle evals",
                  .words =
                      [](const SmallRuns& runs, const std::string& out) {
                        fs::create_directories(runs.File(out));
                        return runs.OracleEvals(out + "/a.jsonl.zst");
                      },
                  .content = [](const std::string& path) { return SomeFiles(path, ".zst"); },
                  .expect_intact = WholeFiles("a.jsonl.zst")});
}

TEST(FaultTest, Merge) {
  ExpectSurvives(
      {.name = "policy merge",
       .words =
           [](const SmallRuns& runs, const std::string& out) {
             for (const char* shard : {"0", "1"}) {  // Already there but the first time.
               RunOnce(runs.Precompute("shards", {"--shards", "2", "--shard", shard}), runs);
             }
             return runs.Merge("shards", out);
           },
       .content = WholeFolder,
       .expect_intact = WholeFiles(".npy")});
}

// The report and the journal; the games have dates.
TEST(FaultTest, ArenaMatch) {
  ExpectSurvives(
      {.name = "arena match",
       .words = [](const SmallRuns& runs, const std::string& out) { return runs.ArenaMatch(out); },
       .content =
           [](const std::string& path) {
             return SomeFiles(path, ".json") + SomeFiles(path, ".jsonl");
           },
       .expect_intact = WholeFiles("report.json")});
}

TEST(FaultTest, Generate) {
  ExpectSurvives(
      {.name = "2048 generate",
       .words = [](const SmallRuns& runs, const std::string& out) { return runs.Generate(out); },
       .content = [](const std::string& path) { return SomeFiles(path, ".jsonl.gz"); },
       .expect_intact = WholeFiles(".jsonl.gz")});
}

TEST(FaultTest, Pack) {
  ExpectSurvives(
      {.name = "2048 pack",
       .words = [](const SmallRuns& runs, const std::string& out) { return runs.Pack(out); },
       .content = WholeFolder,
       .expect_intact = WholeFiles(".npy"),
       .again = {"--overwrite"}});
}

#ifdef KIBITZ_HAS_TORCH
// Metrics and the last weights: other parts of a checkpoint hold times.
std::string Trained(const std::string& folder) {
  std::string text = ReadWhole(folder + "/metrics.jsonl");
  std::string last;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".pt")) last = std::max(last, path);
  }
  if (last.empty()) return text;
  const io::Value root = io::ReadPt(last);
  const std::function<void(const io::Value&)> add = [&](const io::Value& value) {
    if (value.Is(io::Value::Kind::kTensor)) {
      const io::Tensor tensor = value.AsTensor();
      text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    } else if (value.Is(io::Value::Kind::kDict)) {
      for (const auto& [key, item] : value.pairs()) add(item);
    }
  };
  for (const char* part : {"model_state_dict", "optimizer_state_dict"}) add(root.Get(part));
  return text;
}

void ExpectWholeCheckpoints(const std::string& /*whole*/, const std::string& path) {
  if (!fs::exists(path)) return;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().string();
    if (!name.ends_with(".pt")) continue;
    EXPECT_NO_THROW(io::ReadPt(name)) << name;
  }
}

// Shorter than the one that is killed: every call is to fail.
TEST(FaultTest, Training) {
  ExpectSurvives({.name = "decoder finetune",
                  .words =
                      [](const SmallRuns& runs, const std::string& out) {
                        return runs.Finetune(out, {"--max-steps", "4", "--save-every-n-steps", "2",
                                                   "--num-layers", "1"});
                      },
                  .content = Trained,
                  .expect_intact = ExpectWholeCheckpoints,
                  .faults = 4,
                  .server = testing::ProgramPath("kibitz-train")});
}

#endif

// Kills at random moments; after each a new start goes on. A run that comes to its end must have
// the bytes of one that was never killed.
struct Killing {
  std::function<Words(const SmallRuns&, const std::string& out)> words;
  std::function<std::string(const std::string& path)> content;
};

void ExpectSurvivesKills(const Killing& killing, const SmallRuns& runs) {
  const char* asked = std::getenv("KIBITZ_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 20;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(RunOnce(killing.words(runs, "whole"), runs).code, 0);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string expected = killing.content(runs.File("whole"));
  Rng rng({.seed = 23, .purpose = Purpose("kills")});
  int done = 0;
  int whole = 0;
  for (int run = 0; done < kills || whole == 0; ++run) {
    const std::string out = "killed" + std::to_string(run);
    for (bool ended = false; !ended;) {
      Child child(killing.words(runs, out), {.err = runs.File("err.txt")});
      // After all kills the run goes to its end.
      const double wait = done < kills ? rng.Uniform() * seconds : 3600;
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait);
      while (child.running() && std::chrono::steady_clock::now() < until) usleep(500);
      child.Kill(SIGKILL);
      const int code = child.Wait();  // It may have come to its end just before.
      ended = code != 128 + SIGKILL;
      if (!ended) {
        ++done;
      } else {
        ASSERT_EQ(code, 0) << ReadWhole(runs.File("err.txt"));
      }
    }
    ASSERT_EQ(killing.content(runs.File(out)), expected) << "run " << run;
    fs::remove_all(runs.File(out));
    ++whole;
  }
  std::cout << done << " kills, " << whole << " runs whole\n";
}

#ifdef KIBITZ_HAS_TORCH
TEST(KillTest, TrainingGoesOnAsIfNothingHappened) {
  const SmallRuns runs;
  ExpectSurvivesKills(
      {.words = [](const SmallRuns& some, const std::string& out) { return some.Finetune(out); },
       .content = Trained},
      runs);
}

#endif

TEST(KillTest, PrecomputeGoesOnAsIfNothingHappened) {
  const SmallRuns runs({.evaluation_rows = 40'000});
  ExpectSurvivesKills({.words =
                           [](const SmallRuns& some, const std::string& out) {
                             return some.Precompute(out, {"--flush-seconds", "0.02"});
                           },
                       .content = WholeFolder},
                      runs);
}

}  // namespace
}  // namespace kibitz
