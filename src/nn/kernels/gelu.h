// gelu(x) = x/2 (1 + erf(x / sqrt 2)), a vector at a time, with an error below 3e-7 (|x| + 1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "nn/kernels/lanes.h"

namespace kibitz::nn {

// (1 - erf(z)) e^(z^2) for z >= 0. Abramowitz and Stegun, 7.1.26: erf to 1.5e-7.
inline Lanes ErfTail(Lanes z) {
  const Lanes t = 1.0F / (1.0F + 0.3275911F * z);
  Lanes poly = t * 1.061405429F - 1.453152027F;
  poly = poly * t + 1.421413741F;
  poly = poly * t - 0.284496736F;
  poly = poly * t + 0.254829592F;
  return poly * t;
}

inline Lanes Gelu(Lanes x) {
  const Lanes z = (x < 0.0F ? -x : x) * 0.70710678118654752F;
  const Lanes tail = ErfTail(z) * Exp(-z * z);  // 1 - erf(z)
  return 0.5F * x * (x < 0.0F ? tail : 2.0F - tail);
}

// gelu and its derivative, 1/2 (1 + erf(x / sqrt 2)) + x e^(-x^2 / 2) / sqrt(2 pi), for little more
// than one of them.
struct GeluAndSlope {
  Lanes value;
  Lanes slope;

  explicit GeluAndSlope(Lanes x) {
    const Lanes z = (x < 0.0F ? -x : x) * 0.70710678118654752F;
    const Lanes bell = Exp(-z * z);
    const Lanes tail = ErfTail(z) * bell;
    const Lanes share = 0.5F * (x < 0.0F ? tail : 2.0F - tail);
    value = x * share;
    slope = share + x * bell * 0.39894228040143268F;
  }
};

// to[i] = gelu(from[i]), or to[i] += gelu(from[i]).
inline void ApplyGelu(const float* from, int64_t count, float* to, bool add) {
  const int64_t rest = count % kLanes;
  for (int64_t i = 0; i < count - rest; i += kLanes) {
    const Lanes y = Gelu(Load(from + i));
    Store(to + i, add ? Load(to + i) + y : y);
  }
  for (int64_t i = count - rest; i < count; ++i) {
    const float y = Gelu(Spread(from[i]))[0];
    to[i] = add ? to[i] + y : y;
  }
}

}  // namespace kibitz::nn
