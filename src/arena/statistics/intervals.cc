#include "arena/statistics/intervals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "arena/statistics/elo.h"
#include "base/check.h"
#include "base/random.h"

namespace kibitz::arena {

Interval WilsonInterval(int64_t successes, int64_t trials) {
  CHECK(0 <= successes && successes <= trials);
  if (trials == 0) return {0, 1};
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double z2 = kNormal95 * kNormal95;
  const double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kNormal95 / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {successes == 0 ? 0 : std::max(0.0, centre - half),
          successes == trials ? 1 : std::min(1.0, centre + half)};
}

double ShareOf(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double McNemarExact(int64_t first, int64_t second) {
  CHECK(first >= 0 && second >= 0);
  const int64_t n = first + second;
  const int64_t fewer = std::min(first, second);
  if (n == 0) return 1;
  // Binomial coefficients by their logarithms: n may be large.
  double tail = 0;
  for (int64_t k = 0; k <= fewer; ++k) {
    const double log_choose = std::lgamma(static_cast<double>(n) + 1) -
                              std::lgamma(static_cast<double>(k) + 1) -
                              std::lgamma(static_cast<double>(n - k) + 1);
    tail += std::exp(log_choose - static_cast<double>(n) * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Resampled PairedBootstrap(std::span<const double> differences, const BootstrapOptions& options) {
  Resampled result;
  if (differences.empty()) return result;
  const auto n = static_cast<double>(differences.size());
  result.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  std::vector<double> means;
  means.reserve(static_cast<size_t>(options.resamples));
  for (int i = 0; i < options.resamples; ++i) {
    Rng rng({.seed = options.seed,
             .sample = static_cast<uint64_t>(i),
             .purpose = Purpose("bootstrap")});
    double sum = 0;
    for (size_t k = 0; k < differences.size(); ++k)
      sum += differences[rng.Below(differences.size())];
    means.push_back(sum / n);
  }
  std::sort(means.begin(), means.end());
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(means.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, means.size() - 1);
    return means[below] + (place - static_cast<double>(below)) * (means[above] - means[below]);
  };
  result.interval = {quantile(0.025), quantile(0.975)};
  const auto not_above = std::upper_bound(means.begin(), means.end(), 0.0) - means.begin();
  const auto below = std::lower_bound(means.begin(), means.end(), 0.0) - means.begin();
  const auto resamples = static_cast<double>(means.size());
  const double share =
      std::min(static_cast<double>(not_above), resamples - static_cast<double>(below));
  result.p_value = std::min(1.0, 2 * (share + 1) / (resamples + 1));
  return result;
}

}  // namespace kibitz::arena
