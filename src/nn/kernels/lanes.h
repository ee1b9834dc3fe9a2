// SIMD vectors of floats in the compilers' portable vector types, without intrinsics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kibitz::nn {

#if defined(__AVX512F__)
inline constexpr int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr int64_t kLanes = 8;
#else
inline constexpr int64_t kLanes = 4;
#endif

// Both need only a float's alignment.
typedef float Lanes __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t IntLanes __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Lanes Load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
inline void Store(float* to, Lanes value) { *reinterpret_cast<Lanes*>(to) = value; }
inline Lanes Spread(float value) { return value - Lanes{}; }  // x - 0 is x, also for -0.
inline Lanes Larger(Lanes a, Lanes b) { return a > b ? a : b; }

// (1, 0, 3, 2, ...)
inline Lanes SwapNeighbours(Lanes x) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif defined(__AVX__)
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
  return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
}

// The largest of all, in every lane.
inline Lanes Largest(Lanes x) {
#if defined(__AVX512F__)
  x = Larger(x,
             __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  x = Larger(x,
             __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  x = Larger(x,
             __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
#elif defined(__AVX__)
  x = Larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
  x = Larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
#else
  x = Larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
#endif
  return Larger(x, SwapNeighbours(x));
}

inline float Sum(Lanes value) {
  float sum = 0;
  for (int64_t i = 0; i < kLanes; ++i) sum += value[i];
  return sum;
}

// Sum of a[i] * b[i].
inline float Dot(const float* a, const float* b, int64_t size) {
  Lanes sum{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) sum += Load(a + i) * Load(b + i);
  float rest = 0;
  for (; i < size; ++i) rest += a[i] * b[i];
  return Sum(sum) + rest;
}

// e^x to 2e-7 relative; 0 below -87, e^88 above 88.
inline Lanes Exp(Lanes x) {
  const Lanes low = Spread(-87.0F);
  const Lanes high = Spread(88.0F);
  Lanes clamped = x < low ? low : x;
  clamped = clamped > high ? high : clamped;
  // x = n ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to the whole number n.
  const Lanes magic = Spread(12582912.0F);
  const Lanes shifted = clamped * 1.44269504088896341F + magic;
  const Lanes n = shifted - magic;
  const Lanes r = clamped - n * 0.693359375F + n * 2.12194440e-4F;
  Lanes poly = Spread(1.9875691500e-4F);
  poly = poly * r + 1.3981999507e-3F;
  poly = poly * r + 8.3334519073e-3F;
  poly = poly * r + 4.1665795894e-2F;
  poly = poly * r + 1.6666665459e-1F;
  poly = poly * r + 5.0000001201e-1F;
  const Lanes mantissa = poly * (r * r) + r + 1.0F;
  const IntLanes exponent = (reinterpret_cast<IntLanes>(shifted) + 127) << 23;
  const Lanes result = mantissa * reinterpret_cast<Lanes>(exponent);
  return x < low ? Lanes{} : result;
}

// e^x to 7e-6 relative, in half the time; e^-87 below -87, e^87 above 87.
inline Lanes QuickExp(Lanes x) {
  Lanes t = Larger(x * 1.44269504088896341F, Spread(-125.5F));
  t = t < 125.5F ? t : Spread(125.5F);
  // 2^t = 2^n 2^f with |f| <= 1/2; adding 1.5 * 2^23 rounds to the whole number n.
  const Lanes magic = Spread(12582912.0F);
  const Lanes shifted = t + magic;
  const Lanes f = t - (shifted - magic);
  Lanes poly = Spread(9.600396e-3F);
  poly = poly * f + 5.591689e-2F;
  poly = poly * f + 2.4023718e-1F;
  poly = poly * f + 6.931220e-1F;
  poly = poly * f + 1.0F;
  const IntLanes exponent = reinterpret_cast<IntLanes>(shifted) << 23;
  return reinterpret_cast<Lanes>(reinterpret_cast<IntLanes>(poly) + exponent);
}

// 2^x to 2e-7 relative for x in [-125, 127]; about 2^-125 below, down to -4e6.
[[gnu::always_inline]] inline Lanes Exp2(Lanes x) {
  // 2^x = 2^n 2^f with |f| <= 1/2; adding 1.5 * 2^23 rounds to the whole number n.
  const Lanes magic = Spread(12582912.0F);
  const Lanes shifted = x + magic;
  const Lanes f = x - (shifted - magic);
  Lanes poly = Spread(1.32764722e-3F);
  poly = poly * f + 9.67554133e-3F;
  poly = poly * f + 5.55071327e-2F;
  poly = poly * f + 2.40221197e-1F;
  poly = poly * f + 6.93146967e-1F;
  poly = poly * f + 1.00000007F;
  // Integers, as compilers have one instruction for their larger one.
  const IntLanes lowest = IntLanes{} + (0x4B400000 - 125);  // magic - 125
  const IntLanes n = reinterpret_cast<IntLanes>(shifted);
  const IntLanes exponent = (n > lowest ? n : lowest) << 23;
  return reinterpret_cast<Lanes>(reinterpret_cast<IntLanes>(poly) + exponent);
}

inline Lanes Sigmoid(Lanes x) { return 1.0F / (1.0F + Exp(-x)); }

}  // namespace kibitz::nn
