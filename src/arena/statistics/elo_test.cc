#include "arena/statistics/elo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace kibitz::arena {
namespace {

TEST(EloTest, TheLogisticCurveHasItsKnownPoints) {
  EXPECT_NEAR(EloOfScore(10.0 / 11), 400, 1e-9);
  EXPECT_NEAR(EloOfScore(0.75), 190.848501887865, 1e-9);
  EXPECT_NEAR(ScoreOfElo(200), 0.759746926647958, 1e-12);
  EXPECT_EQ(EloOfScore(0.5), 0);
  EXPECT_TRUE(std::isinf(EloOfScore(1)));
  for (double elo = -800; elo <= 800; elo += 50) {
    EXPECT_NEAR(EloOfScore(ScoreOfElo(elo)), elo, 1e-8);
    EXPECT_NEAR(ScoreOfElo(elo) + ScoreOfElo(-elo), 1, 1e-15);
  }
}

// By hand: 60 wins, 20 draws, 20 losses score 0.7 with variance 0.6 * 0.09 + 0.2 * 0.04 + 0.2 *
// 0.49 = 0.16, so the error of the score is 1.96 * 0.4 / 10.
TEST(EloTest, AWorkedExampleOfGames) {
  const Strength strength = StrengthOf(GameCounts{.wins = 60, .draws = 20, .losses = 20});
  EXPECT_NEAR(strength.score, 0.7, 1e-12);
  EXPECT_NEAR(strength.elo, 147.19, 0.01);
  const double error = kNormal95 * 0.04;
  EXPECT_NEAR(strength.elo_error, (EloOfScore(0.7 + error) - EloOfScore(0.7 - error)) / 2, 1e-9);
  EXPECT_NEAR(strength.normalized_elo, 0.2 / 0.4 * 800 / std::log(10), 1e-9);
  EXPECT_NEAR(strength.los, 0.5 * (1 + std::erf(0.2 / 0.04 / std::sqrt(2))), 1e-12);
}

TEST(EloTest, PairsWhoseGamesAreIndependentSayTheSameAsGames) {
  // 20% wins, 50% draws, 30% losses in both games of each of 10000 pairs.
  const PairCounts pairs{.by_points = {900, 3000, 3700, 2000, 400}, .win_and_loss = 1200};
  const Strength of_pairs = StrengthOf(pairs);
  const Strength of_games = StrengthOf(GameCounts{.wins = 4000, .draws = 10000, .losses = 6000});
  EXPECT_NEAR(of_pairs.elo, of_games.elo, 1e-9);
  EXPECT_NEAR(of_pairs.elo_error, of_games.elo_error, 1e-9);
  EXPECT_NEAR(of_pairs.normalized_elo, of_games.normalized_elo, 1e-9);
  EXPECT_NEAR(of_pairs.normalized_elo_error, of_games.normalized_elo_error, 1e-9);
  EXPECT_NEAR(of_pairs.los, of_games.los, 1e-12);
  EXPECT_NEAR(DrawRatio(pairs), 0.37, 1e-12);
  EXPECT_NEAR(PairsRatio(pairs), 2400.0 / 3900, 1e-12);
}

TEST(EloTest, PairsAreCountedByTheirPoints) {
  PairCounts pairs;
  AddPair(pairs, 1, 1);
  AddPair(pairs, 1, 0);
  AddPair(pairs, 0.5, 0.5);
  AddPair(pairs, 0, 0.5);
  EXPECT_EQ(pairs, (PairCounts{.by_points = {0, 1, 2, 0, 1}, .win_and_loss = 1}));
  EXPECT_EQ(pairs.pairs(), 4);
}

TEST(EloTest, TheOtherPlayersFiguresAreTheNegatives) {
  Rng rng({.seed = 1, .purpose = Purpose("elo test")});
  for (int i = 0; i < 500; ++i) {
    PairCounts pairs;
    for (int64_t& count : pairs.by_points) count = static_cast<int64_t>(rng.Below(40));
    if (pairs.pairs() == 0) continue;
    PairCounts reversed = pairs;
    std::reverse(reversed.by_points.begin(), reversed.by_points.end());
    const Strength a = StrengthOf(pairs);
    const Strength b = StrengthOf(reversed);
    EXPECT_NEAR(a.los + b.los, 1, 1e-12);
    EXPECT_GE(a.los, 0);
    EXPECT_LE(a.los, 1);
    if (std::isfinite(a.elo)) {
      EXPECT_NEAR(a.elo, -b.elo, 1e-8);
      EXPECT_NEAR(a.normalized_elo, -b.normalized_elo, 1e-8);
      EXPECT_EQ(a.elo > 0, a.los > 0.5);
    }
  }
}

TEST(EloTest, MoreOfTheSameResultsHalveTheErrorAndKeepTheElo) {
  const PairCounts few{.by_points = {3, 10, 40, 12, 9}};
  PairCounts many = few;
  for (int64_t& count : many.by_points) count *= 400;
  EXPECT_NEAR(StrengthOf(few).elo, StrengthOf(many).elo, 1e-9);
  EXPECT_NEAR(StrengthOf(few).normalized_elo_error / StrengthOf(many).normalized_elo_error, 20,
              1e-9);
  EXPECT_GT(StrengthOf(many).los, StrengthOf(few).los);
}

TEST(EloTest, AllResultsAlikeAndNoResultsGiveNoNonsense) {
  const Strength lost = StrengthOf(PairCounts{.by_points = {10, 0, 0, 0, 0}});
  EXPECT_EQ(lost.elo, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(lost.los, 0);
  const Strength drawn = StrengthOf(GameCounts{.draws = 10});
  EXPECT_EQ(drawn.elo, 0);
  EXPECT_EQ(drawn.elo_error, 0);
  EXPECT_EQ(drawn.los, 0.5);
  const Strength none = StrengthOf(GameCounts{});
  EXPECT_EQ(none.elo, 0);
  EXPECT_TRUE(std::isnan(none.elo_error));
}

}  // namespace
}  // namespace kibitz::arena
