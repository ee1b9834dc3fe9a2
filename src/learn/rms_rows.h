// RMSNorm of single rows, forward and backward, for the fused functions. Letters: D width.
#pragma once

#include <cmath>
#include <cstdint>

#include "nn/kernels/lanes.h"

namespace kibitz::learn {

using nn::Dot;

// The norm's parameters.
struct RmsScale {
  const float* scale = nullptr;  // (D)
  int64_t width = 0;
  float epsilon = 0;
};

// y = x * factor * scale.
inline void ScaleRow(const RmsScale& norm, const float* x, float factor, float* y) {
  int64_t i = 0;
  for (; i + nn::kLanes <= norm.width; i += nn::kLanes) {
    nn::Store(y + i, nn::Load(x + i) * factor * nn::Load(norm.scale + i));
  }
  for (; i < norm.width; ++i) y[i] = x[i] * factor * norm.scale[i];
}

// The norm of a row. Returns its factor: 1 / root mean square.
inline float NormRow(const RmsScale& norm, const float* x, float* y) {
  const float mean = Dot(x, x, norm.width) / static_cast<float>(norm.width);
  const float factor = 1 / std::sqrt(mean + norm.epsilon);
  ScaleRow(norm, x, factor, y);
  return factor;
}

struct RmsRowBackward {
  const float* x = nullptr;
  float factor = 0;
  const float* dy = nullptr;
  const float* onto = nullptr;  // Added to dx; may be null.
  float* dx = nullptr;          // May be `onto`.
  float* dscale = nullptr;      // Added to.
};
// With g = dy * scale and r = factor: dx = r g - x r^3 mean(g x); dscale += dy x r.
inline void NormRowBackward(const RmsScale& norm, const RmsRowBackward& row) {
  using nn::kLanes;
  using nn::Load;
  const float r = row.factor;
  nn::Lanes sum{};
  int64_t i = 0;
  for (; i + kLanes <= norm.width; i += kLanes) {
    const nn::Lanes product = Load(row.dy + i) * Load(row.x + i);
    nn::Store(row.dscale + i, Load(row.dscale + i) + product * r);
    sum += product * Load(norm.scale + i);
  }
  float rest = 0;
  for (; i < norm.width; ++i) {
    const float product = row.dy[i] * row.x[i];
    row.dscale[i] += product * r;
    rest += product * norm.scale[i];
  }
  const float along = (nn::Sum(sum) + rest) / static_cast<float>(norm.width) * r * r * r;
  for (i = 0; i + kLanes <= norm.width; i += kLanes) {
    nn::Lanes dx = Load(row.dy + i) * Load(norm.scale + i) * r - Load(row.x + i) * along;
    if (row.onto != nullptr) dx += Load(row.onto + i);
    nn::Store(row.dx + i, dx);
  }
  for (; i < norm.width; ++i) {
    const float dx = row.dy[i] * norm.scale[i] * r - row.x[i] * along;
    row.dx[i] = row.onto != nullptr ? dx + row.onto[i] : dx;
  }
}

}  // namespace kibitz::learn
