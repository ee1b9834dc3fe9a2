// A norm over all numbers of a board, forward and back, one board at a time. Channels may be
// padded; behind them x, weight and bias are 0, and what gradients say there means nothing.
// Letters: N numbers of a board with the padding, a multiple of 2 * kLanes.
//
//   const NormRows norm = {.weight = w, .bias = b, .size = n, .count = n, .epsilon = 1e-5F};
//   Normalise(norm, SumsOf(norm, x), x, y);
#pragma once

#include <cstdint>

namespace kibitz::nn {

struct NormRows {
  const float* weight = nullptr;  // (N); nothing: there is no norm, what comes in goes out.
  const float* bias = nullptr;    // (N); nothing: an RMSNorm.
  int64_t size = 0;               // N
  int64_t count = 0;              // Numbers that count, without the padding.
  float epsilon = 0;
};

// What the way back has to know of a board.
struct NormSums {
  float mean = 0;    // 0 of an RMSNorm.
  float factor = 0;  // 1 / root of the variance, or of the mean square.
};

NormSums SumsOf(const NormRows& norm, const float* x);
// y = (x - mean) * factor * weight + bias
void Normalise(const NormRows& norm, const NormSums& sums, const float* x, float* y);

struct NormGradients {
  float* weight = nullptr;  // (N), added to.
  float* bias = nullptr;    // The same.
};
// dx from dy = the gradient of y; adds `onto` to it where that is given. dx may be onto.
void NormaliseBack(const NormRows& norm, const NormSums& sums, const float* x, const float* dy,
                   const float* onto, float* dx, const NormGradients& gradients);

}  // namespace kibitz::nn
