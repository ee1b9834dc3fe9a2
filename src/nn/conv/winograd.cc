#include "nn/conv/winograd.h"

namespace kibitz::nn::winograd {
namespace {

// A line of weights to its taps, in double precision: done once.
void TransformLine(const double* g, int64_t g_step, double* out, int64_t out_step) {
  constexpr double kNormA = 2.0 * kA2 * (kA2 - kB2);
  constexpr double kNormB = 2.0 * kB2 * (kB2 - kA2);
  const double even_a = g[0] + g[2 * g_step] * kA2;
  const double even_b = g[0] + g[2 * g_step] * kB2;
  const double odd_a = g[g_step] * static_cast<double>(kA);
  const double odd_b = g[g_step] * static_cast<double>(kB);
  out[0] = g[0] / (kA2 * kB2);
  out[out_step] = (even_a + odd_a) / kNormA;
  out[2 * out_step] = (even_a - odd_a) / kNormA;
  out[3 * out_step] = (even_b + odd_b) / kNormB;
  out[4 * out_step] = (even_b - odd_b) / kNormB;
  out[5 * out_step] = g[2 * g_step];
}

}  // namespace

std::array<float, kTaps> TransformWeights(const float* window) {
  std::array<double, 9> exact;
  for (size_t i = 0; i < exact.size(); ++i) exact[i] = window[i];
  std::array<double, kSide * 3> between;  // (6, 3)
  for (int64_t i = 0; i < 3; ++i) TransformLine(exact.data() + i, 3, between.data() + i, 3);
  std::array<double, kTaps> taps;
  for (int64_t i = 0; i < kSide; ++i) {
    TransformLine(between.data() + i * 3, 1, taps.data() + i * kSide, 1);
  }
  std::array<float, kTaps> rounded;
  for (size_t i = 0; i < taps.size(); ++i) rounded[i] = static_cast<float>(taps[i]);
  return rounded;
}

}  // namespace kibitz::nn::winograd
