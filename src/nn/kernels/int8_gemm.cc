#include "nn/kernels/int8_gemm.h"

#include <algorithm>

#if defined(__AVX2__)
#include <immintrin.h>

#include "nn/kernels/lanes.h"
#endif

namespace kibitz::nn {

void Int8GemmTilePlain(const Int8Gemm& gemm) {
  const auto& [a, b, rows, groups, planes, c] = gemm;
  std::fill_n(c, rows * kInt8Columns, 0.0F);
  for (int64_t g = 0; g < groups * planes; ++g) {
    const uint8_t* a_group = a.numbers + g * kInt8RowGroupBytes;
    const int8_t* b_group = b.numbers + g / planes * kInt8ColumnGroupBytes;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < kInt8Columns; ++column) {
        const int64_t place = g / planes * kInt8Columns + column;
        int32_t sum = b.zeros[place];
        for (int64_t k = 0; k < kInt8Group; ++k) {
          sum += a_group[Int8RowPlace(row, k)] * b_group[Int8ColumnPlace(column, k)];
        }
        c[row * kInt8Columns + column] +=
            static_cast<float>(sum) * (a.scales[g * kInt8Rows + row] * b.scales[place]);
      }
    }
  }
}

#if defined(__AVX2__)
namespace {

// The sums of kRows rows, one member each: compilers keep members in registers, but not always an
// array.
template <int64_t kRows>
struct Sums;
template <>
struct Sums<0> {
  void Start(const int32_t*) {}
  void Add(const uint8_t*, const int8_t*) {}
  void Write(const float*, const float*, bool, float*) const {}
};

#if defined(__AVX512VNNI__)

// Two sums take turns, so that neither waits for its last product.
template <int64_t kRows>
struct Sums {
  __m512i even;
  __m512i odd;
  Sums<kRows - 1> next;

  void Start(const int32_t* zeros) {
    even = _mm512_loadu_si512(zeros);
    odd = _mm512_setzero_si512();
    next.Start(zeros);
  }
  // b: sixteen columns of four numbers, and of the next four.
  void Add(const uint8_t* a, const int8_t* b) {
    even = _mm512_dpbusd_epi32(even, SpreadQuad(a), _mm512_loadu_si512(b));
    odd = _mm512_dpbusd_epi32(odd, SpreadQuad(a + 4 * kInt8Rows),
                              _mm512_loadu_si512(b + 4 * kInt8Columns));
    next.Add(a + 4, b);
  }
  void Write(const float* a_scales, const float* b_scales, bool add, float* c) const {
    static_assert(kInt8Columns == kLanes);
    const auto sum = reinterpret_cast<IntLanes>(even) + reinterpret_cast<IntLanes>(odd);
    const Lanes numbers = __builtin_convertvector(sum, Lanes);
    // Rounded once, alike for all numbers of rows.
    Store(c, _mm512_fmadd_ps(numbers, *a_scales * Load(b_scales), add ? Load(c) : Lanes{}));
    next.Write(a_scales + 1, b_scales, add, c + kInt8Columns);
  }

 private:
  // Four numbers of a row, sixteen times.
  static __m512i SpreadQuad(const uint8_t* from) {
    int32_t quad = 0;
    __builtin_memcpy(&quad, from, 4);
    return _mm512_set1_epi32(quad);
  }
};
#else
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
inline __m256i AddEight(__m256i sum, __m256i a_low, __m256i b_low, __m256i a_high, __m256i b_high) {
  const __m256i pairs =
      _mm256_add_epi16(_mm256_maddubs_epi16(a_low, b_low), _mm256_maddubs_epi16(a_high, b_high));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

template <int64_t kRows>
struct Sums {
  __m256i left;
  __m256i right;
  Sums<kRows - 1> next;

  void Start(const int32_t* zeros) {
    left = LoadBytes(zeros);
    right = LoadBytes(zeros + 8);
    next.Start(zeros);
  }
  // b: four times eight columns of four numbers; low and high numbers in turn with left and right.
  void Add(const uint8_t* a, const int8_t* b) {
    const __m256i low = SpreadQuad(a);
    const __m256i high = SpreadQuad(a + 4 * kInt8Rows);
    left = AddEight(left, low, LoadBytes(b), high, LoadBytes(b + 64));
    right = AddEight(right, low, LoadBytes(b + 32), high, LoadBytes(b + 96));
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
#endif

template <int64_t kRows>
void GemmRows(const Int8Gemm& gemm) {
  const auto [a, b, rows, groups, planes, c] = gemm;
  constexpr int64_t kStep = 8;  // Numbers of a row in one step of the inner loop.
  for (int64_t g = 0; g < groups * planes; ++g) {
    const int64_t weights = g / planes;
    const uint8_t* a_quad = a.numbers + g * kInt8RowGroupBytes;
    const int8_t* b_quad = b.numbers + weights * kInt8ColumnGroupBytes;
    const int32_t* zeros = b.zeros + weights * kInt8Columns;
    const float* scales = b.scales + weights * kInt8Columns;
    Sums<kRows> sums;
    sums.Start(zeros);
    for (int64_t k = 0; k < kInt8Group; k += kStep) {
      sums.Add(a_quad, b_quad);
      a_quad += kStep * kInt8Rows;
      b_quad += kStep * kInt8Columns;
    }
    sums.Write(a.scales + g * kInt8Rows, scales, g > 0, c);
  }
}

}  // namespace

void Int8GemmTile(const Int8Gemm& gemm) {
  static_assert(kInt8Rows == 4 && kInt8Columns == 16);
  switch (gemm.rows) {
    case 1:
      return GemmRows<1>(gemm);
    case 2:
      return GemmRows<2>(gemm);
    case 3:
      return GemmRows<3>(gemm);
    default:
      return GemmRows<4>(gemm);
  }
}
#else
void Int8GemmTile(const Int8Gemm& gemm) { Int8GemmTilePlain(gemm); }
#endif

}  // namespace kibitz::nn
