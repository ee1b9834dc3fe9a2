// The activations of convolutional networks, and the padding of their channels: a square's channels
// lie side by side, rounded up to whole vectors.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/kernels/aligned.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn {

enum class Activation : uint8_t { kRelu, kMish };

// Floats from one square's channels to the next square's.
constexpr int64_t PaddedChannels(int64_t channels) { return RoundUp(channels, kLanes); }

inline Lanes Relu(Lanes x) { return Larger(x, Lanes{}); }

// x tanh(ln(1 + e^x))
inline Lanes Mish(Lanes x) {
  // With n = e^x (e^x + 2) that is x n / (n + 2); above 20 it is x.
  const Lanes max = Spread(20.0F);
  const Lanes e = Exp(x < max ? x : max);
  const Lanes n = e * (e + 2.0F);
  return x * (n / (n + 2.0F));
}

inline Lanes Apply(std::optional<Activation> activation, Lanes x) {
  if (!activation) return x;
  return *activation == Activation::kRelu ? Relu(x) : Mish(x);
}

// Calls body(function) with the activation as a function that the compiler can inline.
template <typename Body>
inline void WithActivation(std::optional<Activation> activation, const Body& body) {
  if (!activation) return body([](Lanes x) { return x; });
  if (*activation == Activation::kRelu) return body([](Lanes x) { return Relu(x); });
  body([](Lanes x) { return Mish(x); });
}

}  // namespace kibitz::nn
