#include "arena/statistics/sprt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "base/random.h"

namespace kibitz::arena {
namespace {

using ::testing::HasSubstr;

TEST(SprtTest, BoundsAreWalds) {
  const SprtOptions usual;
  EXPECT_NEAR(usual.lower(), -2.944438979166440, 1e-12);  // log(0.05 / 0.95)
  EXPECT_NEAR(usual.upper(), 2.944438979166440, 1e-12);
  const SprtOptions uneven{.alpha = 0.1, .beta = 0.01};
  EXPECT_NEAR(uneven.lower(), std::log(0.01 / 0.9), 1e-12);
  EXPECT_NEAR(uneven.upper(), std::log(0.99 / 0.1), 1e-12);
}

// For many results near equality the ratio is that of two normal distributions (Van den Bergh's
// approximation): n (s1 - s0) (2 s - s0 - s1) / (2 variance).
TEST(SprtTest, ApproachesTheNormalFormula) {
  const PairCounts pairs{.by_points = {500, 4900, 9100, 5000, 500}};
  const Strength strength = StrengthOf(pairs);
  double variance = 0;
  for (size_t i = 0; i < 5; ++i) {
    variance += static_cast<double>(pairs.by_points[i]) / 20000 *
                std::pow(static_cast<double>(i) / 4 - strength.score, 2);
  }
  const SprtOptions sprt{.elo0 = 0, .elo1 = 2, .model = EloModel::kLogistic};
  const double s0 = ScoreOfElo(0);
  const double s1 = ScoreOfElo(2);
  EXPECT_NEAR(LogLikelihoodRatio(pairs, sprt),
              20000 * (s1 - s0) * (2 * strength.score - s0 - s1) / (2 * variance), 0.01);
  const SprtOptions normalized{.elo0 = 0, .elo1 = 2};
  const double unit = std::sqrt(2 * variance) * std::log(10) / 800;  // A normalized point as score.
  EXPECT_NEAR(LogLikelihoodRatio(pairs, normalized),
              20000 * (2 * unit) * (2 * (strength.score - 0.5) - 2 * unit) / (2 * variance), 0.01);
}

// The same results seen by the other player, with the hypotheses seen by the other player.
TEST(SprtTest, IsTheSameFromTheOtherSide) {
  Rng rng({.seed = 1, .purpose = Purpose("sprt test")});
  for (int i = 0; i < 40; ++i) {
    PairCounts pairs;
    for (int64_t& count : pairs.by_points) count = static_cast<int64_t>(rng.Below(30));
    PairCounts reversed = pairs;
    std::reverse(reversed.by_points.begin(), reversed.by_points.end());
    for (EloModel model : {EloModel::kNormalized, EloModel::kLogistic}) {
      const SprtOptions sprt{.elo0 = -3, .elo1 = 20, .model = model};
      const SprtOptions mirrored{.elo0 = -20, .elo1 = 3, .model = model};
      const double llr = LogLikelihoodRatio(pairs, sprt);
      EXPECT_NEAR(llr, -LogLikelihoodRatio(reversed, mirrored), 1e-6 * (1 + std::abs(llr)));
    }
  }
}

TEST(SprtTest, RisesWithEveryWinAndFallsWithEveryLoss) {
  for (EloModel model : {EloModel::kNormalized, EloModel::kLogistic}) {
    const SprtOptions sprt{.elo0 = 0, .elo1 = 10, .model = model};
    PairCounts pairs{.by_points = {10, 20, 50, 20, 10}};
    double before = LogLikelihoodRatio(pairs, sprt);
    for (int i = 0; i < 20; ++i) {
      ++pairs.by_points[4];
      const double now = LogLikelihoodRatio(pairs, sprt);
      EXPECT_GT(now, before);
      before = now;
    }
    pairs = {.by_points = {10, 20, 50, 20, 10}};
    ++pairs.by_points[0];
    EXPECT_LT(LogLikelihoodRatio(pairs, sprt),
              LogLikelihoodRatio(PairCounts{.by_points = {10, 20, 50, 20, 10}}, sprt));
  }
}

// Pairs until the test ends, when all have the same result; at most 1000.
int PairsToTheEnd(size_t points, const SprtOptions& sprt, SprtDecision expected) {
  PairCounts pairs;
  for (int n = 1; n <= 1000; ++n) {
    ++pairs.by_points[points];
    const double llr = LogLikelihoodRatio(pairs, sprt);
    EXPECT_TRUE(std::isfinite(llr));
    const SprtDecision decision = DecisionOf(llr, sprt);
    if (decision == SprtDecision::kContinue) continue;
    EXPECT_EQ(decision, expected);
    return n;
  }
  return 1001;
}

TEST(SprtTest, ExtremeBoundsEndAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  for (EloModel model : {EloModel::kNormalized, EloModel::kLogistic}) {
    const SprtOptions far{.elo0 = -1500, .elo1 = -500, .model = model};
    EXPECT_LE(PairsToTheEnd(0, far, SprtDecision::kElo0), 70);
    EXPECT_LE(PairsToTheEnd(4, far, SprtDecision::kElo1), 2);
    EXPECT_LE(PairsToTheEnd(2, far, SprtDecision::kElo1), 10);
    const SprtOptions widest{.elo0 = -5000, .elo1 = 5000, .model = model};
    EXPECT_LE(PairsToTheEnd(0, widest, SprtDecision::kElo0), 2);
    EXPECT_LE(PairsToTheEnd(4, widest, SprtDecision::kElo1), 2);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 20);
}

// Simulated matches of a known strength: wrong ends occur about as often as alpha and beta say.
TEST(SprtTest, WrongEndsAreAsRareAsAskedFor) {
  const SprtOptions sprt{
      .elo0 = 0, .elo1 = 60, .alpha = 0.1, .beta = 0.1, .model = EloModel::kLogistic};
  Rng rng({.seed = 3, .purpose = Purpose("sprt simulation")});
  int wrong = 0;
  constexpr int kMatches = 400;
  for (int match = 0; match < kMatches; ++match) {
    const bool stronger = match % 2 == 1;
    const double score = ScoreOfElo(stronger ? sprt.elo1 : sprt.elo0);
    PairCounts pairs;
    SprtDecision decision = SprtDecision::kContinue;
    while (decision == SprtDecision::kContinue && pairs.pairs() < 5000) {
      // Draws half of the time.
      const auto result = [&] {
        const double draw = rng.Uniform();
        return draw < 0.5 ? 0.5 : draw < 0.5 + (score - 0.25) ? 1.0 : 0.0;
      };
      const double first = result();
      AddPair(pairs, first, result());
      decision = DecisionOf(LogLikelihoodRatio(pairs, sprt), sprt);
    }
    wrong += decision == (stronger ? SprtDecision::kElo0 : SprtDecision::kElo1) ? 1 : 0;
  }
  EXPECT_LT(wrong, 0.14 * kMatches);
  EXPECT_GT(wrong, 0.03 * kMatches);
}

TEST(SprtTest, WrongBoundsAreExplained) {
  EXPECT_TRUE(ParseSprt("0,5"));
  EXPECT_EQ(ParseSprt(" -1500 , -500 ")->elo0, -1500);
  EXPECT_THAT(ParseSprt("5").reason(), HasSubstr("ELO0,ELO1"));
  EXPECT_THAT(ParseSprt("5,x").reason(), HasSubstr("ELO0,ELO1"));
  EXPECT_THAT(ParseSprt("5,0").reason(), HasSubstr("below"));
  EXPECT_THAT(ParseSprt("0,1e9").reason(), HasSubstr("5000"));
  EXPECT_THAT(WhyNoSprt({.alpha = 0.6, .beta = 0.6}), HasSubstr("sum below 1"));
}

}  // namespace
}  // namespace kibitz::arena
