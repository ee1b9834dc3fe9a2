#include "io/runs/metrics_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::ReadWhole;
using testing::TempFolder;

std::string MessageOf(const std::string& path) {
  try {
    const MetricsLog log(path);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

void WriteSteps(MetricsLog& log, int from, int to) {
  for (int step = from; step <= to; ++step) {
    log.Write({{"step", step}, {"loss", 1.0 / step}});
  }
}

TEST(MetricsLog, OneObjectALineOnDiskAtOnce) {
  const TempFolder folder;
  const std::string path = folder.File("m.jsonl");
  MetricsLog log(path);
  log.Write({{"step", 1}, {"loss", 0.5}, {"note", "a\nb"}});
  EXPECT_EQ(ReadWhole(path), "{\"step\":1,\"loss\":0.5,\"note\":\"a\\nb\"}\n");
  log.Write({{"step", 2}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(ReadWhole(path).substr(36), "{\"step\":2,\"loss\":null}\n");
}

TEST(MetricsLog, ReopenedLogContinues) {
  const TempFolder folder;
  const std::string path = folder.File("m.jsonl");
  {
    MetricsLog log(path);
    WriteSteps(log, 1, 2);
  }
  {
    MetricsLog log(path);
    WriteSteps(log, 3, 3);
  }
  EXPECT_EQ(ReadWhole(path),
            "{\"step\":1,\"loss\":1.0}\n{\"step\":2,\"loss\":0.5}\n"
            "{\"step\":3,\"loss\":0.3333333333333333}\n");
}

TEST(MetricsLog, AResumeDropsWhatARunWroteBecauseItStopped) {
  const TempFolder folder;
  const std::string path = folder.File("m.jsonl");
  {
    MetricsLog log(path);
    WriteSteps(log, 1, 1);
    log.Write({{"step", 1}, {"kind", "val"}, {"closing", true}});
  }
  const MetricsLog log(path, {.resume_step = 1});
  EXPECT_EQ(ReadWhole(path), "{\"step\":1,\"loss\":1.0}\n");
}

TEST(MetricsLog, ResumedRunLeavesTheSameFile) {
  const TempFolder folder;
  const std::string straight = folder.File("straight.jsonl");
  const std::string resumed = folder.File("resumed.jsonl");
  {
    MetricsLog log(straight);
    log.Write({{"config", "x"}});
    WriteSteps(log, 1, 30);
  }
  {
    MetricsLog log(resumed);
    log.Write({{"config", "x"}});
    WriteSteps(log, 1, 25);
  }
  std::ofstream(resumed, std::ios::app) << "{\"step\":26,\"lo";  // Killed.
  {
    MetricsLog log(resumed, {.resume_step = 20});
    WriteSteps(log, 21, 30);
  }
  EXPECT_EQ(ReadWhole(resumed), ReadWhole(straight));
  EXPECT_FALSE(testing::Exists(resumed + ".tmp"));
}

TEST(MetricsLog, TornLastLineGoes) {
  const TempFolder folder;
  const std::string path = folder.File("m.jsonl");
  std::ofstream(path) << "{\"step\":1}\n{\"step\":2}";
  { const MetricsLog log(path); }
  EXPECT_EQ(ReadWhole(path), "{\"step\":1}\n");
}

TEST(MetricsLog, NamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder.File("m.jsonl");
  std::ofstream(path) << "{\"step\":1}\nloss 3\n{\"step\":2}\n";
  EXPECT_EQ(MessageOf(path),
            path + ", line 2: 'loss 3' is not a JSON object; remove the line or start another log");
  EXPECT_EQ(ReadWhole(path), "{\"step\":1}\nloss 3\n{\"step\":2}\n");
  EXPECT_NE(MessageOf(folder.File("no/m.jsonl")).find("cannot write"), std::string::npos);
  const std::string other = folder.File("other.jsonl");
  const MetricsLog log(other);
  EXPECT_NE(MessageOf(other).find("is being written by another process"), std::string::npos);
}

}  // namespace
}  // namespace kibitz::io
