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

// The sums of kRows rows, one member each: compilers keep members in registers, but not arrays.
template <int64_t kRows>
struct Sums {
  __m256i left;
  __m256i right;
  Sums<kRows - 1> next;

  void Start(__m256i left_zeros, __m256i right_zeros) {
    left = left_zeros;
    right = right_zeros;
    next.Start(left_zeros, right_zeros);
  }
  // b: four times eight columns of four numbers; low and high numbers in turn with left and right.
  void Add(const uint8_t* a, const __m256i (&b)[4]) {
    const __m256i low = SpreadQuad(a);
    const __m256i high = SpreadQuad(a + 4 * kInt8Rows);
    left = AddEight(left, low, b[0], high, b[2]);
    right = AddEight(right, low, b[1], high, b[3]);
    next.Add(a + 4, b);
  }
  void Write(const float* a_scales, __m256 left_scale, __m256 right_scale, bool add,
             float* c) const {
    const __m256 scale = _mm256_set1_ps(*a_scales);
    const __m256 old_left = add ? _mm256_loadu_ps(c) : _mm256_setzero_ps();
    const __m256 old_right = add ? _mm256_loadu_ps(c + 8) : _mm256_setzero_ps();
    _mm256_storeu_ps(
        c, _mm256_fmadd_ps(_mm256_cvtepi32_ps(left), _mm256_mul_ps(scale, left_scale), old_left));
    _mm256_storeu_ps(c + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(right),
                                            _mm256_mul_ps(scale, right_scale), old_right));
    next.Write(a_scales + 1, left_scale, right_scale, add, c + kInt8Columns);
  }
};
template <>
struct Sums<0> {
  void Start(__m256i, __m256i) {}
  void Add(const uint8_t*, const __m256i (&)[4]) {}
  void Write(const float*, __m256, __m256, bool, float*) const {}
};

template <int64_t kRows>
void Product(const Int8RowTile& a, const Int8Panel& b, int64_t groups, int64_t planes, float* c) {
  constexpr int64_t kStep = 8;  // Numbers of a row in one round of the inner loop.
  for (int64_t g = 0; g < groups * planes; ++g) {
    const int64_t weights = g / planes;
    const uint8_t* a_quad = a.numbers + g * kInt8RowGroupBytes;
    const int8_t* b_quad = b.numbers + weights * kInt8ColumnGroupBytes;
    const int32_t* zeros = b.zeros + weights * kInt8Columns;
    const float* scales = b.scales + weights * kInt8Columns;
    Sums<kRows> sums;
    sums.Start(LoadBytes(zeros), LoadBytes(zeros + 8));
    for (int64_t k = 0; k < kInt8Group; k += kStep) {
      const __m256i columns[4] = {LoadBytes(b_quad), LoadBytes(b_quad + 32), LoadBytes(b_quad + 64),
                                  LoadBytes(b_quad + 96)};
      sums.Add(a_quad, columns);
      a_quad += kStep * kInt8Rows;
      b_quad += kStep * kInt8Columns;
    }
    sums.Write(a.scales + g * kInt8Rows, _mm256_loadu_ps(scales), _mm256_loadu_ps(scales + 8),
               g > 0, c);
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
