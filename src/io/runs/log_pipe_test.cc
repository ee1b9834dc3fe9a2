#include "io/runs/log_pipe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::ReadWhole;
using testing::TempFolder;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(LogPipeTest, PassesEveryLineInOrder) {
  TempFolder folder;
  std::string expected;
  {
    LogPipe pipe("cat > " + folder.File("lines"));
    for (int i = 0; i < 5000; ++i) {
      const std::string line = "{\"step\":" + std::to_string(i) + "}";
      pipe.Write(line);
      expected += line + "\n";
    }
  }
  EXPECT_EQ(ReadWhole(folder.File("lines")), expected);
}

TEST(LogPipeTest, NeverWaitsForAProgramThatDoesNotRead) {
  const auto start = std::chrono::steady_clock::now();
  {
    LogPipe pipe("sleep 1000", {.max_lines = 100, .finish_seconds = 0.2});
    for (int i = 0; i < 100'000; ++i) pipe.Write(std::string(200, 'x'));
    EXPECT_LT(SecondsSince(start), 5);
    EXPECT_GT(pipe.dropped(), 90'000U);
  }
  EXPECT_LT(SecondsSince(start), 10);
}

TEST(LogPipeTest, SurvivesAProgramThatEnds) {
  for (const char* command : {"exit 3", "head -n 1 > /dev/null", "no-such-program-here"}) {
    LogPipe pipe(command);
    for (int i = 0; i < 50; ++i) {
      pipe.Write(std::string(10'000, 'x'));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_GT(pipe.dropped(), 0U) << command;
  }
}

// The bridge that ships, with a module in wandb's place that notes what it is given.
TEST(LogPipeTest, TheBridgeToWandbPassesNamesAndSteps) {
  SKIP_WITHOUT_PYTHON("json");
  TempFolder folder;
  std::ofstream(folder.File("wandb.py"))
      << "class Run:\n"
         "    def log(self, values, step):\n"
         "        print(step, sorted(values.items()), file=open('" +
             folder.File("log") +
             "', 'a'))\n"
             "def init(**options):\n"
             "    return Run()\n";
  {
    LogPipe pipe("PYTHONPATH=" + folder.path() + " " + testing::PythonWith("json") + " " +
                 testing::SourcePath("examples/wandb_log.py"));
    pipe.Write(R"({"step":10,"kind":"train","total_loss":2.5})");
    pipe.Write(R"({"step":20,"kind":"val","total_loss":2.25})");
  }
  EXPECT_EQ(ReadWhole(folder.File("log")),
            "10 [('train/total_loss', 2.5)]\n20 [('val/total_loss', 2.25)]\n");
}

}  // namespace
}  // namespace kibitz::io
