// Compiled with -fno-math-errno, which makes a vector loop of one with square roots, and with
// -ffp-contract=off: without fused multiplication and addition the roundings are torch's.
#include "learn/adamw_update.h"

#include <cmath>

namespace kibitz::learn {

void Update(const AdamWPiece& piece) {
  const auto decay = static_cast<float>(piece.factors.decay);
  const auto beta1 = static_cast<float>(piece.factors.beta1);
  const auto beta2 = static_cast<float>(piece.factors.beta2);
  const auto rest1 = static_cast<float>(1 - piece.factors.beta1);
  const auto rest2 = static_cast<float>(1 - piece.factors.beta2);
  const auto step_size = static_cast<float>(piece.factors.step_size);
  const auto root_scale = static_cast<float>(piece.factors.root_scale);
  const auto epsilon = static_cast<float>(piece.factors.epsilon);
  float* __restrict parameter = piece.parameter;
  const float* __restrict gradient = piece.gradient;
  float* __restrict exp_avg = piece.exp_avg;
  float* __restrict exp_avg_sq = piece.exp_avg_sq;
  for (int64_t i = 0; i < piece.size; ++i) {
    const float g = gradient[i];
    const float mean = exp_avg[i] * beta1 + g * rest1;
    const float square = exp_avg_sq[i] * beta2 + g * g * rest2;
    exp_avg[i] = mean;
    exp_avg_sq[i] = square;
    const float divisor = std::sqrt(square) / root_scale + epsilon;
    parameter[i] = parameter[i] * decay + -step_size * mean / divisor;
  }
}

}  // namespace kibitz::learn
