#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kibitz {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Mode = Progress::Options::Mode;

struct Captured {
  std::vector<std::string> lines;
  std::vector<std::string> statuses;
};

Progress::Options Capture(Captured& captured, Mode mode, double line_seconds = 0) {
  Progress::Options options;
  options.mode = mode;
  options.line_seconds = line_seconds;
  options.write = [&captured](const std::string& text, bool status) {
    (status ? captured.statuses : captured.lines).push_back(text);
  };
  return options;
}

TEST(ProgressTest, PlainLinesWithRateAndTimeLeft) {
  Captured captured;
  Progress progress("games", 0, Capture(captured, Mode::kLines));
  progress.SetTotal(200);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  progress.SetNote("loss 2.5");
  progress.Add(50);
  ASSERT_EQ(captured.lines.size(), 1U);
  EXPECT_THAT(captured.lines[0], HasSubstr("games 25%  50/200"));
  EXPECT_THAT(captured.lines[0], ContainsRegex("/s  ETA 0:00  loss 2.5$"));
  progress.Finish();
  progress.Finish();
  ASSERT_EQ(captured.lines.size(), 2U);
  EXPECT_THAT(captured.lines[1], ContainsRegex("^50 games in 0:00 \\("));
  EXPECT_TRUE(captured.statuses.empty());
}

TEST(ProgressTest, AResumedRunCountsFromItsBeginningButNotInTheRate) {
  Captured captured;
  Progress::Options options = Capture(captured, Mode::kLines);
  options.start = 500;
  Progress progress("steps", 1000, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.Add(1);
  ASSERT_EQ(captured.lines.size(), 1U);
  EXPECT_THAT(captured.lines[0], HasSubstr("steps 50%  501/1.00k"));
  // At most ten a second: 499 take 50 seconds and more, not the tenth of one that 501 would tell.
  EXPECT_THAT(captured.lines[0], Not(HasSubstr("ETA 0:00")));
  progress.Finish();
  EXPECT_THAT(captured.lines[1], ContainsRegex("^1 steps in 0:00 \\("));
}

TEST(ProgressTest, WhatIsReadBackCountsInTheShareOnly) {
  Captured captured;
  Progress progress("games", 1000, Capture(captured, Mode::kLines));
  progress.AddKept(500);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.Add(1);
  EXPECT_THAT(captured.lines.front(), HasSubstr("games 50%  500/1.00k  0/s"));
  EXPECT_THAT(captured.lines.front(), Not(HasSubstr("ETA")));
  EXPECT_THAT(captured.lines.back(), HasSubstr("games 50%  501/1.00k"));
  EXPECT_THAT(captured.lines.back(), Not(HasSubstr("ETA 0:00")));
  EXPECT_EQ(progress.done(), 501u);
  progress.Finish();
  EXPECT_THAT(captured.lines.back(), ContainsRegex("^1 games in 0:00 \\("));
}

TEST(ProgressTest, TheTimeLimitBoundsTheTimeLeft) {
  Captured captured;
  Progress::Options options = Capture(captured, Mode::kLines);
  options.max_seconds = 60.4;
  Progress progress("steps", 1'000'000, options);
  progress.SetNote("batch 3/8");
  progress.Add(0);  // Nothing done yet: only the limit is known.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.Add(1);
  ASSERT_EQ(captured.lines.size(), 2U);
  EXPECT_THAT(captured.lines[0], ContainsRegex("^steps 0%  0/1.00M  0/s  ETA 1:00  batch 3/8$"));
  EXPECT_THAT(captured.lines[1], HasSubstr("ETA 1:00"));
}

TEST(ProgressTest, BarIsDrawnAndCleared) {
  Captured captured;
  {
    Progress progress("rows", 4, Capture(captured, Mode::kBar));
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    progress.Add(2);
  }
  ASSERT_EQ(captured.statuses.size(), 2U);
  EXPECT_THAT(captured.statuses[0], HasSubstr("[============>           ] 50%"));
  EXPECT_EQ(captured.statuses[1], "");
  EXPECT_TRUE(captured.lines.empty());
}

TEST(ProgressTest, SilentSaysNothingButCounts) {
  Captured captured;
  Progress progress("rows", 0, Capture(captured, Mode::kSilent));
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) progress.Add(1);
  });
  for (int i = 0; i < 1000; ++i) progress.Add(1);
  other.join();
  progress.Finish();
  EXPECT_EQ(progress.done(), 2000U);
  EXPECT_TRUE(captured.lines.empty() && captured.statuses.empty());
}

}  // namespace
}  // namespace kibitz
