#include "learn/options/loop_options.h"

#include <gtest/gtest.h>

namespace kibitz::learn {
namespace {

TEST(LoopOptionsTest, WarmsUpOnALine) {
  const LoopOptions options{.learning_rate = 1, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 0, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 3, 0), 1);
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 1'000'000, 10), 1);
}

TEST(LoopOptionsTest, FallingSchedulesEndAtTheirShare) {
  LoopOptions options{.learning_rate = 2,
                      .warmup_steps = 10,
                      .schedule = Schedule::kCosine,
                      .min_lr_ratio = 0.1,
                      .decay_fraction = 0.5};
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 10, 110), 2);
  EXPECT_NEAR(LearningRateAt(options, 60, 110), 1.1, 1e-12);
  EXPECT_NEAR(LearningRateAt(options, 110, 110), 0.2, 1e-12);
  EXPECT_NEAR(LearningRateAt(options, 500, 110), 0.2, 1e-12);
  options.schedule = Schedule::kWarmupStableDecay;
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 54, 110), 2);
  EXPECT_NEAR(LearningRateAt(options, 110, 110), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 54, 0), 2);  // Without a plan the rate stays.
}

}  // namespace
}  // namespace kibitz::learn
