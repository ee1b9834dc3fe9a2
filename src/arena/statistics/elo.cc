#include "arena/statistics/elo.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace kibitz::arena {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kNormalizedScale = 800 / std::log(10.0);

// `counts` of equally spaced scores from 0 to 1; each is the mean of `games` games.
Strength StrengthOf(std::span<const int64_t> counts, double games) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  Strength strength;
  if (total == 0) {
    strength.elo_error = strength.normalized_elo_error = kNaN;
    return strength;
  }
  const auto score_of = [&](size_t i) {
    return static_cast<double>(i) / static_cast<double>(counts.size() - 1);
  };
  double score = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    score += score_of(i) * static_cast<double>(counts[i]) / total;
  }
  double variance = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    variance += std::pow(score_of(i) - score, 2) * static_cast<double>(counts[i]) / total;
  }
  const double error = kNormal95 * std::sqrt(variance / total);
  strength.score = score;
  strength.elo = EloOfScore(score);
  strength.elo_error = (EloOfScore(score + error) - EloOfScore(score - error)) / 2;
  const double deviation = std::sqrt(games * variance);  // Of one game.
  strength.normalized_elo = score == 0.5 ? 0 : (score - 0.5) / deviation * kNormalizedScale;
  strength.normalized_elo_error = error / deviation * kNormalizedScale;
  if (variance > 0) {
    strength.los = 0.5 * std::erfc(-(score - 0.5) / std::sqrt(2 * variance / total));
  } else {
    strength.los = score > 0.5 ? 1 : score < 0.5 ? 0 : 0.5;
  }
  return strength;
}

}  // namespace

int64_t PairCounts::pairs() const {
  return std::accumulate(by_points.begin(), by_points.end(), int64_t{0});
}

void AddPair(PairCounts& pairs, double first, double second) {
  const auto half_points = static_cast<size_t>(std::lround(2 * (first + second)));
  CHECK(half_points < pairs.by_points.size());
  ++pairs.by_points[half_points];
  if (half_points == 2 && first != second) ++pairs.win_and_loss;
}

double EloOfScore(double score) {
  if (score <= 0 || score >= 1) {
    const double infinity = std::numeric_limits<double>::infinity();
    return score <= 0 ? -infinity : infinity;
  }
  return -400 * std::log10(1 / score - 1);
}

double ScoreOfElo(double elo) { return 1 / (1 + std::pow(10, -elo / 400)); }

Strength StrengthOf(const GameCounts& games) {
  const std::array<int64_t, 3> counts = {games.losses, games.draws, games.wins};
  return StrengthOf(counts, 1);
}

Strength StrengthOf(const PairCounts& pairs) { return StrengthOf(pairs.by_points, 2); }

double DrawRatio(const PairCounts& pairs) {
  return static_cast<double>(pairs.by_points[2]) / static_cast<double>(pairs.pairs());
}

double PairsRatio(const PairCounts& pairs) {
  return static_cast<double>(pairs.by_points[3] + pairs.by_points[4]) /
         static_cast<double>(pairs.by_points[0] + pairs.by_points[1]);
}

}  // namespace kibitz::arena
