// Products of bfloat16 by the dot products of AVX-512 BF16, for processors without AMX. Both
// factors lie as AMX tiles do (amx.h): rows of numbers on the left, pairs of rows on the right.
//
//   DotSums<8, 2> sums;                        // 8 rows by 32 columns, in registers.
//   sums.Clear();
//   sums.Add({left, left_row}, {right, right_row, right_step});      // 32 numbers of depth.
//
// For functions marked KIBITZ_AVX512_BF16, where HasAvx512Bf16().
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nn/kernels/amx.h"
#include "nn/kernels/bf16.h"

namespace kibitz::nn {

// Rows whose sums, with two vectors of columns each, fill half of the registers.
inline constexpr int64_t kDotRows = 8;

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

#define KIBITZ_BF16_INLINE [[gnu::always_inline]] KIBITZ_AVX512_BF16 inline

// The first `count` of 16 lanes, which may be less than 0 or more than 16.
KIBITZ_BF16_INLINE __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << std::max<int64_t>(0, count)) - 1);
}

struct DotLeft {
  const Bf16* data;
  int64_t row;  // Numbers from a row to the next.
};
struct DotRight {
  const Bf16* data;
  int64_t row;   // Numbers from a pair of rows to the next.
  int64_t step;  // Numbers from 16 columns to the next 16.
};

template <int kRows, int kVectors>
struct DotSums {
  __m512 of[kRows][kVectors];

  [[gnu::always_inline]] KIBITZ_AVX512_BF16 void Clear() {
    for (auto& row : of) {
      for (__m512& sum : row) sum = _mm512_setzero_ps();
    }
  }

  [[gnu::always_inline]] KIBITZ_AVX512_BF16 void Add(const DotLeft& left, const DotRight& right) {
#pragma GCC unroll 2
    for (int64_t pair = 0; pair < kAmxDepth / 2; ++pair) {
      __m512bh columns[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        columns[j] = reinterpret_cast<__m512bh>(
            _mm512_loadu_si512(right.data + pair * right.row + j * right.step));
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        int32_t two = 0;
        std::memcpy(&two, left.data + i * left.row + 2 * pair, sizeof(two));
        const auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) of[i][j] = _mm512_dpbf16_ps(of[i][j], both, columns[j]);
      }
    }
  }
};

#endif

}  // namespace kibitz::nn
