#include "arena/statistics/ratings.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "arena/statistics/elo.h"
#include "base/random.h"

namespace kibitz::arena {
namespace {

const double kUnit = 400 / std::log(10.0);  // Rating points of one unit of the logistic curve.

// American League, 1987 (Agresti, "Categorical Data Analysis"): wins of the row's team over the
// column's. The maximum-likelihood abilities over Baltimore's are published with the R package
// BradleyTerry2.
TEST(RatingsTest, GivesThePublishedAbilitiesOfBaseballTeams) {
  constexpr std::array<std::array<int, 7>, 7> kWins = {{{0, 7, 9, 7, 7, 9, 11},   // Milwaukee
                                                        {6, 0, 7, 5, 11, 9, 9},   // Detroit
                                                        {4, 6, 0, 7, 7, 8, 12},   // Toronto
                                                        {6, 8, 6, 0, 6, 7, 10},   // New York
                                                        {6, 2, 6, 7, 0, 7, 12},   // Boston
                                                        {4, 4, 5, 6, 6, 0, 6},    // Cleveland
                                                        {2, 4, 1, 3, 1, 7, 0}}};  // Baltimore
  std::vector<Encounter> encounters;
  for (size_t i = 0; i < 7; ++i) {
    for (size_t j = i + 1; j < 7; ++j) {
      for (int n = 0; n < kWins[i][j]; ++n) encounters.push_back({i, j, 1, 1});
      for (int n = 0; n < kWins[j][i]; ++n) encounters.push_back({i, j, 0, 1});
    }
  }
  const RatingTable table = RatePlayers(7, encounters);
  EXPECT_FALSE(table.with_virtual_draws);
  constexpr std::array kAbilities = {1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0};
  double sum = 0;
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR((table.players[i].rating - table.players[6].rating) / kUnit, kAbilities[i], 5e-4);
    sum += table.players[i].rating;
  }
  EXPECT_NEAR(sum, 0, 1e-6);
}

TEST(RatingsTest, TwoPlayersAreTheEloOfTheirPairs) {
  const PairCounts pairs{.by_points = {3, 10, 40, 22, 9}};
  std::vector<Encounter> encounters;
  for (size_t points = 0; points < 5; ++points) {
    for (int64_t n = 0; n < pairs.by_points[points]; ++n) {
      encounters.push_back({0, 1, static_cast<double>(points) / 2, 2});
    }
  }
  const RatingTable table = RatePlayers(2, encounters);
  const Strength strength = StrengthOf(pairs);
  EXPECT_NEAR(table.players[0].rating - table.players[1].rating, strength.elo, 1e-6);
  // Each is half of the difference from the mean; the curve is straight within the error, nearly.
  EXPECT_NEAR(2 * table.players[0].error, strength.elo_error, 0.02 * strength.elo_error);
}

TEST(RatingsTest, FindsTheRatingsThatGamesWereDrawnFrom) {
  const std::vector<double> truth = {-300, -80, 0, 120, 260};
  Rng rng({.seed = 5, .purpose = Purpose("ratings test")});
  int outside = 0;
  for (int run = 0; run < 40; ++run) {
    std::vector<Encounter> encounters;
    for (size_t i = 0; i < truth.size(); ++i) {
      for (size_t j = i + 1; j < truth.size(); ++j) {
        for (int n = 0; n < 100; ++n) {
          const bool won = rng.Uniform() < ScoreOfElo(truth[i] - truth[j]);
          encounters.push_back({i, j, won ? 1.0 : 0.0, 1});
        }
      }
    }
    const RatingTable table = RatePlayers(truth.size(), encounters);
    for (size_t i = 0; i < truth.size(); ++i) {
      outside += std::abs(table.players[i].rating - truth[i]) > table.players[i].error ? 1 : 0;
    }
  }
  // 5% of 200, give or take.
  EXPECT_GT(outside, 1);
  EXPECT_LT(outside, 24);
}

TEST(RatingsTest, APlayerWhoWonEverythingGetsAFiniteRating) {
  const std::vector<Encounter> encounters = {{0, 1, 2, 2}, {0, 2, 2, 2}, {1, 2, 1, 2}};
  const RatingTable table = RatePlayers(3, encounters);
  EXPECT_TRUE(table.with_virtual_draws);
  EXPECT_GT(table.players[0].rating, table.players[1].rating + 100);
  EXPECT_LT(table.players[0].rating, 2000);
  EXPECT_NEAR(table.players[1].rating, table.players[2].rating, 1e-6);
  const RatingTable strangers = RatePlayers(2, {});
  EXPECT_TRUE(strangers.with_virtual_draws);
  EXPECT_NEAR(strangers.players[0].rating, 0, 1e-9);
}

TEST(RateAgainstTest, IsTheEloBeyondTheOpponentsRating) {
  const std::vector<KnownEncounter> known = {{.rating = 1500, .points = 75, .games = 100}};
  const auto result = RateAgainst(known);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->with_virtual_draw);
  EXPECT_NEAR(result->rating.rating, 1500 + EloOfScore(0.75), 1e-6);
  EXPECT_NEAR(result->rating.error, kNormal95 * kUnit / std::sqrt(100 * 0.75 * 0.25), 1e-6);
  EXPECT_FALSE(RateAgainst({}));
}

TEST(RateAgainstTest, ExpectedPointsAreThePointsScored) {
  Rng rng({.seed = 6, .purpose = Purpose("rate against")});
  for (int run = 0; run < 50; ++run) {
    std::vector<KnownEncounter> known;
    double points = 0;
    for (int i = 0; i < 50; ++i) {
      known.push_back(
          {.rating = 800 + 2000 * rng.Uniform(), .points = rng.Uniform() < 0.6 ? 1.0 : 0.0});
      points += known.back().points;
    }
    const auto result = RateAgainst(known);
    double expected = 0;
    for (const KnownEncounter& one : known)
      expected += ScoreOfElo(result->rating.rating - one.rating);
    EXPECT_NEAR(expected, points, 1e-6);
  }
}

// The error of a difference is that of many repetitions: here both players meet the same puzzles,
// and mostly solve the same ones.
TEST(RatingDifferenceTest, ItsErrorIsTheSpreadOfRepetitions) {
  Rng rng({.seed = 7, .purpose = Purpose("rating difference")});
  constexpr int kRuns = 400;
  constexpr double kGap = 60;
  double sum = 0, squares = 0, errors = 0, apart = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<KnownEncounter> first;
    std::vector<KnownEncounter> second;
    for (int i = 0; i < 300; ++i) {
      const double rating = 1000 + 1000 * rng.Uniform();
      const double luck = rng.Uniform();  // Shared.
      first.push_back({rating, luck < ScoreOfElo(1500 + kGap - rating) ? 1.0 : 0.0});
      second.push_back({rating, luck < ScoreOfElo(1500 - rating) ? 1.0 : 0.0});
    }
    const auto difference = RatingDifference(first, second);
    ASSERT_TRUE(difference);
    EXPECT_NEAR(difference->rating,
                RateAgainst(first)->rating.rating - RateAgainst(second)->rating.rating, 1e-6);
    EXPECT_NEAR(RatingDifference(second, first)->rating, -difference->rating, 1e-6);
    sum += difference->rating;
    squares += difference->rating * difference->rating;
    errors += difference->error;
    apart += std::hypot(RateAgainst(first)->rating.error, RateAgainst(second)->rating.error);
  }
  const double mean = sum / kRuns;
  const double spread = 1.96 * std::sqrt(squares / kRuns - mean * mean);
  EXPECT_NEAR(mean, kGap, 4);
  EXPECT_NEAR(errors / kRuns, spread, 0.1 * spread);
  EXPECT_LT(errors, 0.6 * apart);  // Two separate errors would be much larger.
}

TEST(RatingDifferenceTest, EqualResultsAreNoDifferenceAndBoundsHaveNoError) {
  const std::vector<KnownEncounter> mixed = {{1000, 1}, {1500, 0}, {1200, 1}};
  EXPECT_EQ(RatingDifference(mixed, mixed)->rating, 0);
  EXPECT_EQ(RatingDifference(mixed, mixed)->error, 0);
  const std::vector<KnownEncounter> all = {{1000, 1}, {1500, 1}, {1200, 1}};
  EXPECT_TRUE(std::isinf(RatingDifference(all, mixed)->error));
  EXPECT_FALSE(RatingDifference({}, {}));
}

TEST(RateAgainstTest, AllSolvedIsABound) {
  const std::vector<KnownEncounter> known(20, {.rating = 1000, .points = 1});
  const auto result = RateAgainst(known);
  EXPECT_TRUE(result->with_virtual_draw);
  EXPECT_GT(result->rating.rating, 1400);
  EXPECT_TRUE(std::isfinite(result->rating.error));
}

}  // namespace
}  // namespace kibitz::arena
