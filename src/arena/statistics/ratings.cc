#include "arena/statistics/ratings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "arena/statistics/elo.h"
#include "base/check.h"

namespace kibitz::arena {
namespace {

const double kScale = std::log(10.0) / 400;  // Rating points to the logistic curve's own unit.

using Matrix = std::vector<std::vector<double>>;

// The inverse by elimination; the matrix is symmetric and positive definite.
Matrix Inverse(Matrix a) {
  const size_t n = a.size();
  Matrix inverse(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) inverse[i][i] = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(inverse[column], inverse[pivot]);
    const double divisor = a[column][column];
    CHECK(divisor != 0);
    for (size_t k = 0; k < n; ++k) {
      a[column][k] /= divisor;
      inverse[column][k] /= divisor;
    }
    for (size_t row = 0; row < n; ++row) {
      const double factor = a[row][column];
      if (row == column || factor == 0) continue;
      for (size_t k = 0; k < n; ++k) {
        a[row][k] -= factor * a[column][k];
        inverse[row][k] -= factor * inverse[column][k];
      }
    }
  }
  return inverse;
}

// Ford's condition: ratings are finite when every group of players scored against the others.
bool IsConnected(size_t players, std::span<const Encounter> encounters) {
  std::vector<std::vector<bool>> reaches(players, std::vector<bool>(players, false));
  for (const Encounter& encounter : encounters) {
    if (encounter.points > 0) reaches[encounter.first][encounter.second] = true;
    if (encounter.points < encounter.games) reaches[encounter.second][encounter.first] = true;
  }
  for (size_t k = 0; k < players; ++k) {
    for (size_t i = 0; i < players; ++i) {
      for (size_t j = 0; j < players; ++j) {
        if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
      }
    }
  }
  for (size_t i = 0; i < players; ++i) {
    for (size_t j = 0; j < players; ++j) {
      if (i != j && !reaches[i][j]) return false;
    }
  }
  return true;
}

// Gradient, information and spread of the log-likelihood at these ratings.
struct Slopes {
  std::vector<double> gradient;
  Matrix information;  // Plus 1 everywhere, which fixes the sum of the ratings.
  Matrix spread;
};

Slopes SlopesAt(const std::vector<double>& ratings, std::span<const Encounter> encounters) {
  const size_t n = ratings.size();
  Slopes slopes{std::vector<double>(n, 0), Matrix(n, std::vector<double>(n, 1)),
                Matrix(n, std::vector<double>(n, 0))};
  const auto add = [](Matrix& matrix, const Encounter& encounter, double value) {
    matrix[encounter.first][encounter.first] += value;
    matrix[encounter.second][encounter.second] += value;
    matrix[encounter.first][encounter.second] -= value;
    matrix[encounter.second][encounter.first] -= value;
  };
  for (const Encounter& encounter : encounters) {
    const double expected =
        1 / (1 + std::exp(ratings[encounter.second] - ratings[encounter.first]));
    const double beyond = encounter.points - encounter.games * expected;
    slopes.gradient[encounter.first] += beyond;
    slopes.gradient[encounter.second] -= beyond;
    add(slopes.information, encounter, encounter.games * expected * (1 - expected));
    add(slopes.spread, encounter, beyond * beyond);
  }
  return slopes;
}

// Newton's method, steps limited to 400 points so that it cannot overshoot.
std::vector<double> Maximize(size_t players, std::span<const Encounter> encounters) {
  std::vector<double> ratings(players, 0);
  for (int step = 0; step < 200; ++step) {
    const Slopes slopes = SlopesAt(ratings, encounters);
    const Matrix inverse = Inverse(slopes.information);
    double largest = 0;
    std::vector<double> change(players, 0);
    for (size_t i = 0; i < players; ++i) {
      for (size_t k = 0; k < players; ++k) change[i] += inverse[i][k] * slopes.gradient[k];
      largest = std::max(largest, std::abs(change[i]));
    }
    const double limit = 400 * kScale;
    const double factor = largest > limit ? limit / largest : 1;
    for (size_t i = 0; i < players; ++i) ratings[i] += factor * change[i];
    if (largest < 1e-12) break;
  }
  return ratings;
}

}  // namespace

RatingTable RatePlayers(size_t players, std::span<const Encounter> encounters) {
  CHECK(players >= 1);
  RatingTable table;
  std::vector<Encounter> all(encounters.begin(), encounters.end());
  if (players > 1 && !IsConnected(players, encounters)) {
    table.with_virtual_draws = true;
    const double games = 1 / static_cast<double>(players - 1);
    for (size_t i = 0; i < players; ++i) {
      for (size_t j = i + 1; j < players; ++j) all.push_back({i, j, games / 2, games});
    }
  }
  const std::vector<double> ratings = Maximize(players, all);
  const Slopes slopes = SlopesAt(ratings, all);
  const Matrix inverse = Inverse(slopes.information);
  for (size_t i = 0; i < players; ++i) {
    double variance = 0;
    for (size_t j = 0; j < players; ++j) {
      for (size_t k = 0; k < players; ++k) {
        variance += inverse[i][j] * slopes.spread[j][k] * inverse[k][i];
      }
    }
    table.players.push_back(
        {ratings[i] / kScale, kNormal95 * std::sqrt(std::max(0.0, variance)) / kScale});
  }
  return table;
}

std::optional<RatingAgainst> RateAgainst(std::span<const KnownEncounter> encounters) {
  if (encounters.empty()) return std::nullopt;
  std::vector<KnownEncounter> all(encounters.begin(), encounters.end());
  double points = 0;
  double games = 0;
  double sum = 0;
  for (const KnownEncounter& encounter : all) {
    points += encounter.points;
    games += encounter.games;
    sum += encounter.games * encounter.rating;
  }
  RatingAgainst result;
  if (points <= 0 || points >= games) {
    result.with_virtual_draw = true;
    all.push_back({.rating = sum / games, .points = 0.5, .games = 1});
  }
  // The expected points rise with the rating: bisection.
  const auto expected = [&](double rating, double opponent) {
    return ScoreOfElo(rating - opponent);
  };
  double low = -10000;
  double high = 20000;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double beyond = 0;
    for (const KnownEncounter& encounter : all) {
      beyond += encounter.points - encounter.games * expected(middle, encounter.rating);
    }
    (beyond > 0 ? low : high) = middle;
  }
  const double rating = (low + high) / 2;
  double information = 0;
  for (const KnownEncounter& encounter : all) {
    const double p = expected(rating, encounter.rating);
    information += encounter.games * p * (1 - p);
  }
  result.rating = {rating, kNormal95 / (kScale * std::sqrt(information))};
  return result;
}

std::optional<Rating> RatingDifference(std::span<const KnownEncounter> first,
                                       std::span<const KnownEncounter> second) {
  CHECK(first.size() == second.size());
  const auto a = RateAgainst(first);
  const auto b = RateAgainst(second);
  if (!a || !b) return std::nullopt;
  Rating difference{a->rating.rating - b->rating.rating, std::numeric_limits<double>::infinity()};
  if (a->with_virtual_draw || b->with_virtual_draw) return difference;
  // How far each encounter moves a rating: its surprise over the slope of all expected points.
  const auto influences = [](std::span<const KnownEncounter> encounters, double rating) {
    std::vector<double> surprises;
    double slope = 0;
    for (const KnownEncounter& encounter : encounters) {
      const double p = ScoreOfElo(rating - encounter.rating);
      surprises.push_back(encounter.points - encounter.games * p);
      slope += kScale * encounter.games * p * (1 - p);
    }
    for (double& surprise : surprises) surprise /= slope;
    return surprises;
  };
  const std::vector<double> of_first = influences(first, a->rating.rating);
  const std::vector<double> of_second = influences(second, b->rating.rating);
  double variance = 0;
  for (size_t i = 0; i < of_first.size(); ++i) {
    variance += (of_first[i] - of_second[i]) * (of_first[i] - of_second[i]);
  }
  difference.error = kNormal95 * std::sqrt(variance);
  return difference;
}

}  // namespace kibitz::arena
