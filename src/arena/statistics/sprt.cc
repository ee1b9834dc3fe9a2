#include "arena/statistics/sprt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "base/text.h"

namespace kibitz::arena {
namespace {

constexpr double kUnseen = 1e-3;  // What a result counts that has not occurred.
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Results seen: their scores, equally spaced from 0 to 1, and their shares.
struct Seen {
  std::vector<double> scores;
  std::vector<double> shares;
  double total = 0;
};

Seen SeenOf(std::span<const int64_t> counts) {
  Seen seen;
  for (size_t i = 0; i < counts.size(); ++i) {
    seen.scores.push_back(static_cast<double>(i) / static_cast<double>(counts.size() - 1));
    seen.shares.push_back(counts[i] == 0 ? kUnseen : static_cast<double>(counts[i]));
  }
  seen.total = std::accumulate(seen.shares.begin(), seen.shares.end(), 0.0);
  for (double& share : seen.shares) share /= seen.total;
  return seen;
}

// The log-likelihood per result, less that of the shares seen, of the likeliest distribution with
// this mean. By Lagrange its probabilities are share / (1 + theta (score - mean)).
double BestWithMean(const Seen& seen, double mean) {
  mean = std::clamp(mean, 1e-9, 1 - 1e-9);
  double low = -1 / (1 - mean);
  double high = 1 / mean;
  for (int i = 0; i < 200; ++i) {  // The slope falls with theta: bisection.
    const double theta = (low + high) / 2;
    double slope = 0;
    for (size_t k = 0; k < seen.scores.size(); ++k) {
      const double x = seen.scores[k] - mean;
      slope += seen.shares[k] * x / (1 + theta * x);
    }
    (slope > 0 ? low : high) = theta;
  }
  const double theta = (low + high) / 2;
  double sum = 0;
  for (size_t k = 0; k < seen.scores.size(); ++k) {
    sum -= seen.shares[k] * std::log(1 + theta * (seen.scores[k] - mean));
  }
  return sum;
}

// The same with this mean and variance: two multipliers, found by Newton's method on the dual,
// which is convex. Minus infinity where no distribution has them.
class MomentFit {
 public:
  MomentFit(const Seen& seen, double mean, double variance) : seen_(seen) {
    for (double score : seen.scores) {
      x_.push_back(score - mean);
      y_.push_back((score - mean) * (score - mean) - variance);
    }
  }

  double Value() {
    double value = 0;
    for (int step = 0; step < 100; ++step) {
      double gx = 0, gy = 0, hxx = 0, hxy = 0, hyy = 0;
      for (size_t k = 0; k < x_.size(); ++k) {
        const double w = 1 + alpha_ * x_[k] + beta_ * y_[k];
        const double share = seen_.shares[k] / w;
        gx -= share * x_[k];
        gy -= share * y_[k];
        hxx += share / w * x_[k] * x_[k];
        hxy += share / w * x_[k] * y_[k];
        hyy += share / w * y_[k] * y_[k];
      }
      const double determinant = hxx * hyy - hxy * hxy;
      if (!(determinant > 0)) return -kInfinity;
      const double dx = -(hyy * gx - hxy * gy) / determinant;
      const double dy = -(hxx * gy - hxy * gx) / determinant;
      const double decrement = -(gx * dx + gy * dy);
      if (!(decrement > 1e-18)) return value;
      value = Move(dx, dy, decrement, value);
    }
    return value;
  }

 private:
  double At(double alpha, double beta) const {
    double sum = 0;
    for (size_t k = 0; k < x_.size(); ++k) {
      const double w = 1 + alpha * x_[k] + beta * y_[k];
      if (!(w > 0)) return kInfinity;
      sum -= seen_.shares[k] * std::log(w);
    }
    return sum;
  }
  // A step that is halved until it helps enough. Returns the new value.
  double Move(double dx, double dy, double decrement, double value) {
    for (double size = 1; size > 1e-12; size /= 2) {
      const double next = At(alpha_ + size * dx, beta_ + size * dy);
      if (next > value - 0.25 * size * decrement) continue;
      alpha_ += size * dx;
      beta_ += size * dy;
      return next;
    }
    return value;
  }

  const Seen& seen_;
  std::vector<double> x_;
  std::vector<double> y_;
  double alpha_ = 0;
  double beta_ = 0;
};

// Whether some distribution over the scores, in its interior, has this mean and variance: the
// variance lies between that of the two scores next to the mean and that of the two ends.
bool Exists(const Seen& seen, double mean, double variance) {
  if (!(mean > 0 && mean < 1)) return false;
  const double gap = seen.scores[1];
  const double beyond = mean - gap * std::floor(mean / gap);
  return variance > beyond * (gap - beyond) * (1 + 1e-9) + 1e-300 &&
         variance < mean * (1 - mean) * (1 - 1e-9);
}

// The same with (mean - 1/2) / deviation = t: the best over all such distributions.
double BestWithRatio(const Seen& seen, double t) {
  // They are a curve in mean and deviation. Its parameter is the logarithm of the deviation, or for
  // large ratios, where means crowd at an end, that of the mean's distance from the end.
  const bool by_mean = std::abs(t) > 1;
  const auto value_at = [&](double parameter) {
    double deviation = std::exp(parameter);
    double mean = 0.5 + t * deviation;
    if (by_mean) {
      mean = t > 0 ? 1 - std::exp(parameter) : std::exp(parameter);
      deviation = (mean - 0.5) / t;
    }
    if (!Exists(seen, mean, deviation * deviation)) return -kInfinity;
    return MomentFit(seen, mean, deviation * deviation).Value();
  };
  // On a grid from 1e-9 to 1/2, then between the neighbours of the best.
  constexpr int kGrid = 200;
  const double first = std::log(1e-9);
  const double gap = (std::log(0.5) - first) / kGrid;
  double best = -kInfinity;
  int best_at = 0;
  for (int i = 0; i <= kGrid; ++i) {
    const double value = value_at(first + gap * i);
    if (value > best) {
      best = value;
      best_at = i;
    }
  }
  double low = first + gap * (best_at - 1);
  double high = first + gap * (best_at + 1);
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 50; ++i) {
    const double a = high - kGolden * (high - low);
    const double b = low + kGolden * (high - low);
    if (value_at(a) > value_at(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  return std::max(best, value_at((low + high) / 2));
}

double RatioOf(const Seen& seen, const SprtOptions& options, double games) {
  if (options.model == EloModel::kLogistic) {
    return seen.total * (BestWithMean(seen, ScoreOfElo(options.elo1)) -
                         BestWithMean(seen, ScoreOfElo(options.elo0)));
  }
  const double scale = std::sqrt(games) * std::log(10.0) / 800;
  const double one = BestWithRatio(seen, options.elo1 * scale);
  const double zero = BestWithRatio(seen, options.elo0 * scale);
  if (std::isinf(one) && std::isinf(zero)) return 0;
  return seen.total * (one - zero);
}

}  // namespace

double SprtOptions::lower() const { return std::log(beta / (1 - alpha)); }
double SprtOptions::upper() const { return std::log((1 - beta) / alpha); }

Result<SprtOptions> ParseSprt(std::string_view text) {
  const auto parts = Split(text, ',');
  const auto elo0 = ParseDouble(Trim(parts.front()));
  const auto elo1 = ParseDouble(Trim(parts.back()));
  if (parts.size() != 2 || !elo0 || !elo1) {
    return Bad("found {}, expected ELO0,ELO1 such as 0,5", Quoted(text));
  }
  SprtOptions options{.elo0 = *elo0, .elo1 = *elo1};
  if (const std::string reason = WhyNoSprt(options); !reason.empty()) return Bad("{}", reason);
  return options;
}

std::string WhyNoSprt(const SprtOptions& options) {
  constexpr double kLargest = 5000;
  if (!(options.elo0 < options.elo1)) {
    return fmt::format("elo0 must be below elo1, found {} and {}", options.elo0, options.elo1);
  }
  if (std::abs(options.elo0) > kLargest || std::abs(options.elo1) > kLargest) {
    return fmt::format("elo0 and elo1 must be within ±{}, found {} and {}", kLargest, options.elo0,
                       options.elo1);
  }
  const auto chance = [](double value) { return value > 0 && value < 1; };
  if (!chance(options.alpha) || !chance(options.beta) || options.alpha + options.beta >= 1) {
    return fmt::format("alpha and beta must be above 0 with a sum below 1, found {} and {}",
                       options.alpha, options.beta);
  }
  return "";
}

double LogLikelihoodRatio(const PairCounts& pairs, const SprtOptions& options) {
  if (pairs.pairs() == 0) return 0;
  return RatioOf(SeenOf(pairs.by_points), options, 2);
}

double LogLikelihoodRatio(const GameCounts& games, const SprtOptions& options) {
  if (games.games() == 0) return 0;
  const std::array<int64_t, 3> counts = {games.losses, games.draws, games.wins};
  return RatioOf(SeenOf(counts), options, 1);
}

SprtDecision DecisionOf(double llr, const SprtOptions& options) {
  if (llr >= options.upper()) return SprtDecision::kElo1;
  if (llr <= options.lower()) return SprtDecision::kElo0;
  return SprtDecision::kContinue;
}

}  // namespace kibitz::arena
