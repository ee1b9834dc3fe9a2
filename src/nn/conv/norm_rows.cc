#include "nn/conv/norm_rows.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/lanes.h"

namespace kibitz::nn {
namespace {

float MeanOf(const NormRows& norm, const float* x) {
  Lanes even{};
  Lanes odd{};
  for (int64_t i = 0; i < norm.size; i += 2 * kLanes) {
    even += Load(x + i);
    odd += Load(x + i + kLanes);
  }
  return Sum(even + odd) / static_cast<float>(norm.count);
}

}  // namespace

NormSums SumsOf(const NormRows& norm, const float* x) {
  NormSums sums;
  if (norm.bias != nullptr) sums.mean = MeanOf(norm, x);
  const Lanes mean = Spread(sums.mean);
  Lanes even{};
  Lanes odd{};
  for (int64_t i = 0; i < norm.size; i += 2 * kLanes) {
    const Lanes a = Load(x + i) - mean;
    const Lanes b = Load(x + i + kLanes) - mean;
    even += a * a;
    odd += b * b;
  }
  // The padding's zeros were counted as -mean.
  const float beyond = static_cast<float>(norm.size - norm.count) * sums.mean * sums.mean;
  const float variance = std::max(0.0F, Sum(even + odd) - beyond) / static_cast<float>(norm.count);
  sums.factor = 1 / std::sqrt(variance + norm.epsilon);
  return sums;
}

void Normalise(const NormRows& norm, const NormSums& sums, const float* x, float* y) {
  const Lanes mean = Spread(sums.mean);
  const Lanes factor = Spread(sums.factor);
  if (norm.bias == nullptr) {
    for (int64_t i = 0; i < norm.size; i += kLanes) {
      Store(y + i, Load(x + i) * factor * Load(norm.weight + i));
    }
    return;
  }
  for (int64_t i = 0; i < norm.size; i += kLanes) {
    Store(y + i, (Load(x + i) - mean) * factor * Load(norm.weight + i) + Load(norm.bias + i));
  }
}

// With h = (x - mean) factor and g = dy weight: dx = factor (g - mean(g) - h mean(g h)); an RMSNorm
// subtracts no mean, so it has no mean(g).
void NormaliseBackward(const NormRows& norm, const NormSums& sums, const NormGradients& gradients) {
  const auto [x, dy, extra, dx, dweight, dbias] = gradients;
  const Lanes mean = Spread(sums.mean);
  const Lanes factor = Spread(sums.factor);
  Lanes sum_g{};
  Lanes sum_gh{};
  for (int64_t i = 0; i < norm.size; i += kLanes) {
    const Lanes h = (Load(x + i) - mean) * factor;
    const Lanes out = Load(dy + i);
    const Lanes g = out * Load(norm.weight + i);
    sum_g += g;
    sum_gh += g * h;
    Store(dweight + i, Load(dweight + i) + out * h);
    if (norm.bias != nullptr) Store(dbias + i, Load(dbias + i) + out);
  }
  const auto count = static_cast<float>(norm.count);
  const Lanes mean_g = Spread(norm.bias == nullptr ? 0 : Sum(sum_g) / count);
  const Lanes mean_gh = Spread(Sum(sum_gh) / count);
  for (int64_t i = 0; i < norm.size; i += kLanes) {
    const Lanes h = (Load(x + i) - mean) * factor;
    Lanes result = factor * (Load(dy + i) * Load(norm.weight + i) - mean_g - h * mean_gh);
    if (extra != nullptr) result += Load(extra + i);
    Store(dx + i, result);
  }
}

}  // namespace kibitz::nn
