// The product of int8_gemm.h in vectors of 256 bits, by AVX2 or AVX-VNNI. A header, so that tests
// compile both also for processors with AVX-512, which use wider vectors.
//
//   int8_256::GemmTile<int8_256::AddByWords>(gemm);
#pragma once

#include <cstdint>

#include "nn/kernels/int8_gemm.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace kibitz::nn::int8_256 {

inline __m256i LoadBytes(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
// Four numbers of a row, eight times.
inline __m256i SpreadQuad(const uint8_t* from) {
  int32_t quad = 0;
  __builtin_memcpy(&quad, from, 4);
  return _mm256_set1_epi32(quad);
}

// Eight columns of one row: products of eight numbers each, summed in 16 bits, then in 32.
struct AddByWords {
  static __m256i Add(__m256i sum, __m256i a_low, __m256i b_low, __m256i a_high, __m256i b_high) {
    const __m256i pairs =
        _mm256_add_epi16(_mm256_maddubs_epi16(a_low, b_low), _mm256_maddubs_epi16(a_high, b_high));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

// The same in 32 bits at once. AVX-512 VNNI has the instruction of AVX-VNNI too, written otherwise.
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
#define KIBITZ_HAS_DOT_BYTES 1
struct AddByDots {
  static __m256i Dot(__m256i sum, __m256i a, __m256i b) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, a, b);
#else
    return _mm256_dpbusd_epi32(sum, a, b);
#endif
  }
  static __m256i Add(__m256i sum, __m256i a_low, __m256i b_low, __m256i a_high, __m256i b_high) {
    return Dot(Dot(sum, a_low, b_low), a_high, b_high);
  }
};
#endif

// The sums of kRows rows, one member each: compilers keep members in registers, but not always an
// array.
template <typename Step, int64_t kRows>
struct Sums;
template <typename Step>
struct Sums<Step, 0> {
  void Start(const int32_t*) {}
  void Add(const uint8_t*, const int8_t*) {}
  void Write(const float*, const float*, bool, float*) const {}
};

template <typename Step, int64_t kRows>
struct Sums {
  __m256i left;
  __m256i right;
  Sums<Step, kRows - 1> next;

  void Start(const int32_t* zeros) {
    left = LoadBytes(zeros);
    right = LoadBytes(zeros + 8);
    next.Start(zeros);
  }
  // b: four times eight columns of four numbers; low and high numbers in turn with left and right.
  void Add(const uint8_t* a, const int8_t* b) {
    const __m256i low = SpreadQuad(a);
    const __m256i high = SpreadQuad(a + 4 * kInt8Rows);
    left = Step::Add(left, low, LoadBytes(b), high, LoadBytes(b + 64));
    right = Step::Add(right, low, LoadBytes(b + 32), high, LoadBytes(b + 96));
    next.Add(a + 4, b);
  }
  void Write(const float* a_scales, const float* b_scales, bool add, float* c) const {
    const __m256 scale = _mm256_set1_ps(*a_scales);
    const __m256 left_scale = _mm256_loadu_ps(b_scales);
    const __m256 right_scale = _mm256_loadu_ps(b_scales + 8);
    const __m256 old_left = add ? _mm256_loadu_ps(c) : _mm256_setzero_ps();
    const __m256 old_right = add ? _mm256_loadu_ps(c + 8) : _mm256_setzero_ps();
    _mm256_storeu_ps(
        c, _mm256_fmadd_ps(_mm256_cvtepi32_ps(left), _mm256_mul_ps(scale, left_scale), old_left));
    _mm256_storeu_ps(c + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(right),
                                            _mm256_mul_ps(scale, right_scale), old_right));
    next.Write(a_scales + 1, b_scales, add, c + kInt8Columns);
  }
};

template <typename Step, int64_t kRows>
void GemmPanel(const Int8Gemm& gemm, int64_t panel) {
  constexpr int64_t kStep = 8;  // Numbers of a row in one step of the inner loop.
  for (int64_t g = 0; g < gemm.groups * gemm.planes; ++g) {
    const int64_t weights = panel * gemm.panel_groups + g / gemm.planes;
    const uint8_t* a_quad = gemm.a.numbers + g * kInt8RowGroupBytes;
    const int8_t* b_quad = gemm.b.numbers + weights * kInt8ColumnGroupBytes;
    Sums<Step, kRows> sums;
    sums.Start(gemm.b.zeros + weights * kInt8Columns);
    for (int64_t k = 0; k < kInt8Group; k += kStep) {
      sums.Add(a_quad, b_quad);
      a_quad += kStep * kInt8Rows;
      b_quad += kStep * kInt8Columns;
    }
    sums.Write(gemm.a.scales + g * kInt8Rows, gemm.b.scales + weights * kInt8Columns,
               gemm.add || g > 0, gemm.c + panel * gemm.c_panel);
  }
}

template <typename Step, int64_t kRows>
void GemmPanels(const Int8Gemm& gemm) {
  for (int64_t panel = 0; panel < gemm.panels; ++panel) GemmPanel<Step, kRows>(gemm, panel);
}

template <typename Step>
void GemmTile(const Int8Gemm& gemm) {
  static_assert(kInt8Rows == 4 && kInt8Columns == 16);
  switch (gemm.rows) {
    case 1:
      return GemmPanels<Step, 1>(gemm);
    case 2:
      return GemmPanels<Step, 2>(gemm);
    case 3:
      return GemmPanels<Step, 3>(gemm);
    default:
      return GemmPanels<Step, 4>(gemm);
  }
}

}  // namespace kibitz::nn::int8_256
#endif
