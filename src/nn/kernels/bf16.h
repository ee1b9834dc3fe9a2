// bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace kibitz::nn {

using Bf16 = uint16_t;

// To the nearest, ties to even.
inline Bf16 ToBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  constexpr uint32_t kInfinity = 0x7f800000;
  if ((bits & 0x7fffffff) > kInfinity) return static_cast<Bf16>(bits >> 16 | 0x40);  // NaN
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float FromBf16(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

}  // namespace kibitz::nn
