#include "learn/settings/loop_settings.h"

#include <gtest/gtest.h>

namespace kibitz::learn {
namespace {

TEST(LoopSettingsTest, WarmsUpOnALine) {
  const LoopSettings settings{.learning_rate = 1, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 0, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 3, 0), 1);
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 1'000'000, 10), 1);
}

TEST(LoopSettingsTest, FallingSchedulesEndAtTheirShare) {
  LoopSettings settings{.learning_rate = 2,
                        .warmup_steps = 10,
                        .schedule = Schedule::kCosine,
                        .min_lr_ratio = 0.1,
                        .decay_fraction = 0.5};
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 10, 110), 2);
  EXPECT_NEAR(LearningRateAt(settings, 60, 110), 1.1, 1e-12);
  EXPECT_NEAR(LearningRateAt(settings, 110, 110), 0.2, 1e-12);
  EXPECT_NEAR(LearningRateAt(settings, 500, 110), 0.2, 1e-12);
  settings.schedule = Schedule::kWarmupStableDecay;
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 54, 110), 2);
  EXPECT_NEAR(LearningRateAt(settings, 110, 110), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRateAt(settings, 54, 0), 2);  // Without a plan the rate stays.
}

}  // namespace
}  // namespace kibitz::learn
