#include "arena/statistics/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace kibitz::arena {
namespace {

// The examples of Newcombe, "Two-sided confidence intervals for the single proportion" (1998).
TEST(WilsonTest, GivesThePublishedIntervals) {
  const struct {
    int64_t successes, trials;
    double low, high;
  } examples[] = {{81, 263, 0.2553, 0.3662},
                  {15, 148, 0.0624, 0.1605},
                  {0, 20, 0.0, 0.1611},
                  {1, 29, 0.0061, 0.1718}};
  for (const auto& example : examples) {
    const Interval interval = WilsonInterval(example.successes, example.trials);
    EXPECT_NEAR(interval.low, example.low, 5e-5);
    EXPECT_NEAR(interval.high, example.high, 5e-5);
  }
}

TEST(WilsonTest, HoldsTheShareAndIsMirrored) {
  for (int64_t trials = 1; trials <= 60; ++trials) {
    for (int64_t successes = 0; successes <= trials; ++successes) {
      const Interval interval = WilsonInterval(successes, trials);
      const double share = static_cast<double>(successes) / static_cast<double>(trials);
      EXPECT_GE(interval.low, 0);
      EXPECT_LE(interval.low, share);
      EXPECT_GE(interval.high, share);
      EXPECT_LE(interval.high, 1);
      const Interval other = WilsonInterval(trials - successes, trials);
      EXPECT_NEAR(interval.low, 1 - other.high, 1e-12);
    }
  }
  EXPECT_EQ(WilsonInterval(0, 0).high, 1);
}

TEST(McNemarTest, IsTheBinomialTail) {
  EXPECT_NEAR(McNemarExact(12, 3), 2.0 * (1 + 15 + 105 + 455) / 32768, 1e-12);
  EXPECT_NEAR(McNemarExact(3, 12), McNemarExact(12, 3), 1e-15);
  EXPECT_NEAR(McNemarExact(0, 6), 2.0 / 64, 1e-12);
  EXPECT_EQ(McNemarExact(0, 0), 1);
  EXPECT_EQ(McNemarExact(7, 7), 1);
  EXPECT_NEAR(McNemarExact(1, 0), 1, 1e-12);
}

TEST(McNemarTest, AgreesWithTheNormalFormForManyItems) {
  // With Edwards' continuity correction: (|b - c| - 1)^2 / (b + c) is chi-squared.
  const double z = (5200 - 5000 - 1) / std::sqrt(10200.0);
  EXPECT_NEAR(McNemarExact(5200, 5000), std::erfc(z / std::sqrt(2)), 1e-4);
}

TEST(BootstrapTest, FindsTheErrorOfAMean) {
  Rng rng({.seed = 2, .purpose = Purpose("bootstrap test")});
  std::vector<double> differences;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 400; ++i) {
    differences.push_back(3 + 20 * rng.Normal());
    sum += differences.back();
    squares += differences.back() * differences.back();
  }
  const double mean = sum / 400;
  const double error = 1.96 * std::sqrt((squares / 400 - mean * mean) / 400);
  const Resampled result = PairedBootstrap(differences);
  EXPECT_NEAR(result.mean, mean, 1e-12);
  EXPECT_NEAR(result.interval.low, mean - error, 0.06 * error);
  EXPECT_NEAR(result.interval.high, mean + error, 0.06 * error);
  EXPECT_NEAR(result.p_value, std::erfc(mean / error * 1.96 / std::sqrt(2)), 0.01);
}

TEST(BootstrapTest, IsAFunctionOfItsSeedAndHandlesTheEnds) {
  const std::vector<double> differences = {1, -2, 5, 0, 3, -1};
  EXPECT_EQ(PairedBootstrap(differences).interval.low, PairedBootstrap(differences).interval.low);
  EXPECT_NE(PairedBootstrap(differences, {.resamples = 500, .seed = 1}).interval.low +
                PairedBootstrap(differences, {.resamples = 500, .seed = 1}).p_value,
            PairedBootstrap(differences, {.resamples = 500, .seed = 2}).interval.low +
                PairedBootstrap(differences, {.resamples = 500, .seed = 2}).p_value);
  const std::vector<double> zeros(10, 0.0);
  EXPECT_EQ(PairedBootstrap(zeros).p_value, 1);
  EXPECT_EQ(PairedBootstrap({}).p_value, 1);
  const std::vector<double> better(30, 1.0);
  EXPECT_LT(PairedBootstrap(better).p_value, 0.001);
}

}  // namespace
}  // namespace kibitz::arena
