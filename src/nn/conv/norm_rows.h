// LayerNorm or RMSNorm over all numbers of a board, forward and backward, one board at a time.
// Channels may be padded: there x, weight and bias are 0, and gradients are undefined.
// Letters: N numbers of a board with the padding, a multiple of 2 * kLanes.
//
//   const NormRows norm = {.weight = w, .bias = b, .size = n, .count = n, .epsilon = 1e-5F};
//   Normalise(norm, SumsOf(norm, x), x, y);
#pragma once

#include <cstdint>

namespace kibitz::nn {

struct NormRows {
  const float* weight = nullptr;  // (N); nullptr: no norm, y = x.
  const float* bias = nullptr;    // (N); nullptr: an RMSNorm.
  int64_t size = 0;               // N
  int64_t count = 0;              // Numbers that count, without the padding.
  float epsilon = 0;
};

// What the backward pass needs of a board's forward pass.
struct NormSums {
  float mean = 0;    // 0 for an RMSNorm.
  float factor = 0;  // 1 / sqrt(variance + epsilon), or of the mean square.
};

NormSums SumsOf(const NormRows& norm, const float* x);
// y = (x - mean) * factor * weight + bias
void Normalise(const NormRows& norm, const NormSums& sums, const float* x, float* y);

// All (N).
struct NormGradients {
  const float* x = nullptr;
  const float* dy = nullptr;     // The gradient of y.
  const float* extra = nullptr;  // Added to dx, or nullptr.
  float* dx = nullptr;           // May be `extra`.
  float* dweight = nullptr;      // Added to.
  float* dbias = nullptr;        // Added to; not used by an RMSNorm.
};
void NormaliseBackward(const NormRows& norm, const NormSums& sums, const NormGradients& gradients);

}  // namespace kibitz::nn
