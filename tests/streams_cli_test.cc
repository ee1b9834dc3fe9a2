// Standard streams that are closed, full or blocked, and signals: nothing aborts, no message lands
// in a file, and the exit code says what happened.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/small_runs.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using ::testing::HasSubstr;
using testing::ReadWhole;
using testing::SmallRuns;
using testing::TempFolder;

const std::string kProgram = testing::ProgramPath("kibitz");

TEST(StreamsTest, AClosedStandardOutputIsAnErrorAndNoAbort) {
  const TempFolder folder;
  Child out({kProgram, "chess", "show"}, {.out = "", .err = folder.File("err")});
  EXPECT_EQ(out.Wait(), 1);
  EXPECT_THAT(ReadWhole(folder.File("err")), HasSubstr("cannot write to standard output"));
  Child both({kProgram, "chess", "show"}, {.in = "", .out = "", .err = ""});
  EXPECT_EQ(both.Wait(), 1);
  Child full({kProgram, "chess", "show"}, {.out = "/dev/full", .err = "/dev/full"});
  EXPECT_EQ(full.Wait(), 1);
}

TEST(StreamsTest, AFullOrClosedStandardErrorHarmsNothing) {
  for (const char* err : {"", "/dev/full"}) {
    const SmallRuns runs;
    Child child(runs.Generate("raws"), {.in = "", .err = err});
    EXPECT_EQ(child.Wait(), 0);
    Child wrong({kProgram, "nonsense"}, {.err = err});
    EXPECT_EQ(wrong.Wait(), 2);
  }
}

#ifdef KIBITZ_HAS_TORCH
TEST(StreamsTest, TrainingWithClosedStreamsKeepsItsFilesClean) {
  const SmallRuns runs;
  Child child(runs.Finetune("run"), {.in = "", .out = "", .err = ""});
  EXPECT_EQ(child.Wait(), 1);  // The report could not be printed.
  EXPECT_TRUE(fs::exists(runs.File("run/checkpoint_step_000000012.pt")));
  std::ifstream timing(runs.File("run/timing.jsonl"));
  for (std::string line; std::getline(timing, line);) EXPECT_TRUE(line.starts_with('{')) << line;
  Child again(runs.Finetune("run"));
  EXPECT_EQ(again.Wait(), 0);
}

TEST(StreamsTest, AHangUpSavesATraining) {
  const SmallRuns runs;
  Child child(runs.Finetune("run", {"--max-steps", "100000", "--save-every-n-steps", "100000"}));
  const std::string metrics = runs.File("run/metrics.jsonl");
  ASSERT_TRUE(child.WaitFor([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  child.Kill(SIGHUP);
  EXPECT_EQ(child.Wait(), 128 + SIGHUP);
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(runs.File("run"))) {
    checkpoints += entry.path().filename().string().starts_with("checkpoint_step_") ? 1 : 0;
  }
  EXPECT_EQ(checkpoints, 1);
}
#endif

TEST(StreamsTest, AnInterruptDuringABlockedWriteExitsWith130) {
  const TempFolder folder;
  const std::string pipe = folder.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::ofstream(folder.File("fens")) << [] {
    std::string text;
    for (int i = 0; i < 20'000; ++i) {
      text += "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n";
    }
    return text;
  }();
  Child child({kProgram, "chess", "moves", "--fens", folder.File("fens")},
              {.out = pipe, .err = folder.File("err")});
  usleep(700'000);  // The pipe holds 64 kB: the writer stands still.
  ASSERT_TRUE(child.running());
  child.Kill(SIGINT);
  EXPECT_EQ(child.Wait(), 130) << ReadWhole(folder.File("err"));
  close(reader);
}

TEST(StreamsTest, AFileSizeLimitIsAMessage) {
  const SmallRuns runs;
  const TempFolder folder;
  Child child(runs.Precompute("data"), {.err = folder.File("err"), .max_file_bytes = 2000});
  EXPECT_EQ(child.Wait(), 1);
  EXPECT_THAT(ReadWhole(folder.File("err")), HasSubstr("File too large"));
}

TEST(StreamsTest, PerftHearsAnInterrupt) {
  Child child({kProgram, "chess", "perft", "--depth", "12"});
  usleep(500'000);
  const auto start = std::chrono::steady_clock::now();
  child.Kill(SIGINT);
  EXPECT_EQ(child.Wait(), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace kibitz
