#include "nn/int8_product.h"

#include <algorithm>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace kibitz::nn {

void Int8ProductPlain(int64_t rows, const Int8RowTile& a, const Int8Panel& b, int64_t groups,
                      int64_t planes, float* c) {
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
void Product(const Int8RowTile& a, const Int8Panel& b, int64_t groups, int64_t planes, float* c) {
  constexpr int64_t kStep = 8;  // Numbers of a row in one round of the inner loop.
  for (int64_t g = 0; g < groups * planes; ++g) {
    const uint8_t* a_quad = a.numbers + g * kInt8RowGroupBytes;
    const int64_t weights = g / planes;
    const int8_t* b_quad = b.numbers + weights * kInt8ColumnGroupBytes;
    const int32_t* zeros = b.zeros + weights * kInt8Columns;
    __m256i left[kRows];
    __m256i right[kRows];
    for (int64_t row = 0; row < kRows; ++row) {
      left[row] = LoadBytes(zeros);
      right[row] = LoadBytes(zeros + 8);
    }
    for (int64_t k = 0; k < kInt8Group; k += kStep) {
      for (int64_t row = 0; row < kRows; ++row) {
        const __m256i low = SpreadQuad(a_quad + 4 * row);
        const __m256i high = SpreadQuad(a_quad + 4 * (kInt8Rows + row));
        left[row] = AddEight(left[row], low, LoadBytes(b_quad), high, LoadBytes(b_quad + 64));
        right[row] =
            AddEight(right[row], low, LoadBytes(b_quad + 32), high, LoadBytes(b_quad + 96));
      }
      a_quad += kStep * kInt8Rows;
      b_quad += kStep * kInt8Columns;
    }
    const __m256 left_scale = _mm256_loadu_ps(b.scales + weights * kInt8Columns);
    const __m256 right_scale = _mm256_loadu_ps(b.scales + weights * kInt8Columns + 8);
    for (int64_t row = 0; row < kRows; ++row) {
      float* out = c + row * kInt8Columns;
      const __m256 scale = _mm256_set1_ps(a.scales[g * kInt8Rows + row]);
      __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
      if (g > 0) {
        sums[0] = _mm256_loadu_ps(out);
        sums[1] = _mm256_loadu_ps(out + 8);
      }
      _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_cvtepi32_ps(left[row]),
                                            _mm256_mul_ps(scale, left_scale), sums[0]));
      _mm256_storeu_ps(out + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(right[row]),
                                                _mm256_mul_ps(scale, right_scale), sums[1]));
    }
  }
}

}  // namespace

void Int8Product(int64_t rows, const Int8RowTile& a, const Int8Panel& b, int64_t groups,
                 int64_t planes, float* c) {
  static_assert(kInt8Rows == 4 && kInt8Columns == 16);
  switch (rows) {
    case 1:
      return Product<1>(a, b, groups, planes, c);
    case 2:
      return Product<2>(a, b, groups, planes, c);
    case 3:
      return Product<3>(a, b, groups, planes, c);
    default:
      return Product<4>(a, b, groups, planes, c);
  }
}
#else
void Int8Product(int64_t rows, const Int8RowTile& a, const Int8Panel& b, int64_t groups,
                 int64_t planes, float* c) {
  Int8ProductPlain(rows, a, b, groups, planes, c);
}
#endif

}  // namespace kibitz::nn
