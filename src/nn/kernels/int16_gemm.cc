#include "nn/kernels/int16_gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "nn/kernels/aligned.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace kibitz::nn {

int32_t Int16Max(int64_t depth) {
  const auto max = static_cast<int32_t>(std::sqrt(
      static_cast<double>(std::numeric_limits<int32_t>::max()) / static_cast<double>(depth)));
  return std::min<int32_t>(max, std::numeric_limits<int16_t>::max());
}

void Int16GemmTilePlain(const Int16Gemm& gemm) {
  for (int64_t row = 0; row < gemm.rows; ++row) {
    for (int64_t column = 0; column < kTileColumns; ++column) {
      int32_t sum = 0;
      for (int64_t k = 0; k < gemm.depth; ++k) {
        sum += gemm.a[row * gemm.a_row + k] * gemm.b[Int16ColumnPlace(column, k)];
      }
      gemm.c[row * gemm.c_row + column] = sum;
    }
  }
}

#if defined(__AVX2__)
namespace {

constexpr int64_t kHalf = 16;  // Columns at a time.

// Keeps a number in its register: GCC would rather read weights from memory again for each row.
inline void Hold(__m256i& number) { __asm__("" : "+x"(number)); }

// The sums of kRows rows, one member each.
template <int64_t kRows>
struct PairSums {
  __m256i left = _mm256_setzero_si256();
  __m256i right = _mm256_setzero_si256();
  PairSums<kRows - 1> next;

  void Add(const int16_t* a, int64_t a_row, __m256i b_left, __m256i b_right) {
    int32_t pair = 0;
    __builtin_memcpy(&pair, a, sizeof pair);
    const __m256i both = _mm256_set1_epi32(pair);
    left = _mm256_add_epi32(left, _mm256_madd_epi16(both, b_left));
    Hold(left);
    right = _mm256_add_epi32(right, _mm256_madd_epi16(both, b_right));
    Hold(right);
    next.Add(a + a_row, a_row, b_left, b_right);
  }
  void Write(int32_t* c, int64_t c_row) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c), left);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + kHalf / 2), right);
    next.Write(c + c_row, c_row);
  }
};
template <>
struct PairSums<0> {
  void Add(const int16_t*, int64_t, __m256i, __m256i) {}
  void Write(int32_t*, int64_t) const {}
};

// One pair of each row and column; advances a and b to the next.
template <int64_t kRows>
inline void AddPair(const int16_t*& a, int64_t a_row, const int16_t*& b, PairSums<kRows>& sums) {
  __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + kHalf));
  Hold(left);
  Hold(right);
  sums.Add(a, a_row, left, right);
  a += 2;
  b += 2 * kTileColumns;
}

template <int64_t kRows>
void GemmRows(const Int16Gemm& gemm, int64_t column) {
  PairSums<kRows> sums;
  const int16_t* a = gemm.a;
  const int16_t* b = gemm.b + column * 2;
  const int16_t* next = gemm.next;
  const int64_t a_row = gemm.a_row;
  const int16_t* const last = a + gemm.depth;
  for (const int16_t* const end = a + 2 * gemm.fetch; a < end;) {
    __builtin_prefetch(next);
    next += kCacheLine / sizeof(int16_t);
    AddPair(a, a_row, b, sums);
  }
  while (a < last) AddPair(a, a_row, b, sums);
  sums.Write(gemm.c + column, gemm.c_row);
}

}  // namespace

void Int16GemmTile(const Int16Gemm& gemm) {
  static_assert(kTileColumns % kHalf == 0 && kTileRows == 6);
  CHECK(gemm.rows == 4 || gemm.rows == 6);
  for (int64_t column = 0; column < kTileColumns; column += kHalf) {
    gemm.rows == 6 ? GemmRows<6>(gemm, column) : GemmRows<4>(gemm, column);
  }
}
#else
void Int16GemmTile(const Int16Gemm& gemm) { Int16GemmTilePlain(gemm); }
#endif

}  // namespace kibitz::nn
