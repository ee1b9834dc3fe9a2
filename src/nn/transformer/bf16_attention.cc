#include "nn/transformer/bf16_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/bf16_dots.h"

namespace kibitz::nn {

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

namespace {

constexpr int64_t kPanel = Bf16Cache::kPanel;
static_assert(kPanel == kAmxDepth);
constexpr int64_t kPair = 2 * kPanel;            // Numbers of a pair in a panel.
constexpr int64_t kPanelStep = kPanel * kPanel;  // Numbers of a panel for 32 of depth.
// Forms with masks, because GCC 12 warns of the others.
constexpr __mmask16 kAll = 0xFFFF;

// Up to 32 numbers times a factor, rounded; 0 behind them.
KIBITZ_BF16_INLINE __m512i Rounded(const float* from, int64_t count, __m512 factor) {
  const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(count), from);
  const __m512 high = _mm512_maskz_loadu_ps(FirstLanes(count - 16), from + 16);
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_mul_ps(high, factor), _mm512_mul_ps(low, factor)));
}

// The memory of one task: scores of rows, and over them their weights in half the space.
struct Scratch {
  Bf16* queries;  // (rows, E rounded up)
  int64_t depth;
  float* scores;  // (rows, keys), `row` apart.
  int64_t row;    // Not a multiple of a page: rows would share lines of the first cache.
  float* factors;

  Bf16* weights(int64_t i) const { return reinterpret_cast<Bf16*>(scores + i * row); }
};

// Scores are in units of log 2, for powers of 2 instead of e.
KIBITZ_AVX512_BF16 void RoundQueries(const Bf16HeadRows& head, const Scratch& scratch) {
  const auto count = static_cast<int64_t>(head.rows.size());
  const __m512 factor =
      _mm512_set1_ps(std::numbers::log2e_v<float> / std::sqrt(static_cast<float>(head.width)));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t e = 0; e < scratch.depth; e += kPanel) {
      _mm512_store_si512(scratch.queries + i * scratch.depth + e,
                         Rounded(head.queries + i * head.query_row + e, head.width - e, factor));
    }
  }
}

// kRows rows by the 32 positions of a panel.
template <int kRows>
KIBITZ_AVX512_BF16 void ScorePanel(const Scratch& scratch, int64_t row, const Bf16* panel,
                                   int64_t key) {
  DotSums<kRows, 2> sums;
  sums.Clear();
  for (int64_t e = 0; e < scratch.depth; e += kPanel) {
    sums.Add({scratch.queries + row * scratch.depth + e, scratch.depth},
             {panel + e / kPanel * kPanelStep, kPair, kPanel});
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* to = scratch.scores + (row + i) * scratch.row + key;
    _mm512_storeu_ps(to, sums.of[i][0]);
    _mm512_storeu_ps(to + 16, sums.of[i][1]);
  }
}

// 2^x for x <= 0, to 8e-5 relative: bfloat16 has 4e-3.
KIBITZ_BF16_INLINE __m512 PowerOf2(__m512 x) {
  constexpr int kFloor = 0x09;
  const __m512 part = _mm512_maskz_reduce_ps(kAll, x, kFloor);  // In [0, 1).
  __m512 poly = _mm512_set1_ps(7.80245227e-2F);
  poly = _mm512_fmadd_ps(poly, part, _mm512_set1_ps(2.26067155e-1F));
  poly = _mm512_fmadd_ps(poly, part, _mm512_set1_ps(6.95833541e-1F));
  poly = _mm512_fmadd_ps(poly, part, _mm512_set1_ps(9.99925219e-1F));
  return _mm512_maskz_scalef_ps(kAll, poly, x);
}

KIBITZ_BF16_INLINE __m512 Larger(__m512 a, __m512 b) { return _mm512_maskz_max_ps(kAll, a, b); }

KIBITZ_BF16_INLINE std::array<float, 16> LanesOf(__m512 vector) {
  std::array<float, 16> lanes;
  _mm512_storeu_ps(lanes.data(), vector);
  return lanes;
}

// Scores of a row to rounded weights, in place; returns 1 / their sum.
KIBITZ_AVX512_BF16 float Softmax(float* scores, Bf16* weights, int64_t keys, const RowKeys& row) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::fill(scores + row.seen, scores + keys, kNone);
  std::fill(scores + row.hidden_begin, scores + row.hidden_end, kNone);
  __m512 largest = _mm512_set1_ps(kNone);
  __m512 other = largest;
  for (int64_t k = 0; k < keys; k += kPanel) {
    largest = Larger(largest, _mm512_loadu_ps(scores + k));
    other = Larger(other, _mm512_loadu_ps(scores + k + 16));
  }
  const auto maxima = LanesOf(Larger(largest, other));
  const __m512 top = _mm512_set1_ps(*std::ranges::max_element(maxima));
  __m512 sum = _mm512_setzero_ps();
  __m512 other_sum = sum;
  for (int64_t k = 0; k < keys; k += kPanel) {
    const __m512 low = PowerOf2(_mm512_sub_ps(_mm512_loadu_ps(scores + k), top));
    const __m512 high = PowerOf2(_mm512_sub_ps(_mm512_loadu_ps(scores + k + 16), top));
    sum = _mm512_add_ps(sum, low);
    other_sum = _mm512_add_ps(other_sum, high);
    _mm512_storeu_si512(weights + k, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  const auto sums = LanesOf(_mm512_add_ps(sum, other_sum));
  return 1 / std::accumulate(sums.begin(), sums.end(), 0.0F);
}

// kRows rows of weights by 32 numbers of all values.
template <int kRows>
KIBITZ_AVX512_BF16 void MixValues(const Bf16HeadRows& head, const Scratch& scratch, int64_t row,
                                  int64_t e) {
  const Bf16* values = head.cache.values + e * head.cache.positions;
  DotSums<kRows, 2> sums;
  sums.Clear();
  for (int64_t k = 0; k < head.keys.count; k += kPanel) {
    sums.Add({scratch.weights(row) + k, 2 * scratch.row},
             {values + head.keys.PositionOf(k) * kPanel, kPair, kPanel});
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const __m512 factor = _mm512_set1_ps(scratch.factors[row + i]);
    float* to = head.out + (row + i) * head.out_row + e;
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      _mm512_mask_storeu_ps(to + 16 * j, FirstLanes(head.width - e - 16 * j),
                            _mm512_mul_ps(sums.of[i][j], factor));
    }
  }
}

template <typename Function>
using ByRows = std::array<Function*, kDotRows + 1>;  // By the number of rows.

constexpr ByRows<void(const Scratch&, int64_t, const Bf16*, int64_t)> kScorePanel = {
    nullptr,       ScorePanel<1>, ScorePanel<2>, ScorePanel<3>, ScorePanel<4>,
    ScorePanel<5>, ScorePanel<6>, ScorePanel<7>, ScorePanel<8>};
constexpr ByRows<void(const Bf16HeadRows&, const Scratch&, int64_t, int64_t)> kMixValues = {
    nullptr,      MixValues<1>, MixValues<2>, MixValues<3>, MixValues<4>,
    MixValues<5>, MixValues<6>, MixValues<7>, MixValues<8>};

// Calls body(first row, number of rows) for tiles of rows.
template <typename Body>
void ForTiles(int64_t rows, const Body& body) {
  for (int64_t row = 0; row < rows; row += kDotRows) {
    body(row, static_cast<size_t>(std::min(kDotRows, rows - row)));
  }
}

Scratch MakeScratch(const Bf16HeadRows& head) {
  thread_local AlignedArray<float> memory;
  const auto rows = static_cast<int64_t>(head.rows.size());
  Scratch scratch = {};
  scratch.depth = RoundUp(head.width, kPanel);
  scratch.row = head.keys.count + 16;
  const int64_t queries = rows * scratch.depth / 2;
  memory.Reserve(queries + rows * (scratch.row + 1));
  scratch.queries = reinterpret_cast<Bf16*>(memory.data());
  scratch.scores = memory.data() + queries;
  scratch.factors = scratch.scores + rows * scratch.row;
  return scratch;
}

}  // namespace

KIBITZ_AVX512_BF16 void StoreBf16(const Bf16Cache& cache, int64_t position, const float* key,
                                  const float* value, int64_t width) {
  const int64_t depth = RoundUp(width, kPanel);
  const __m512 one = _mm512_set1_ps(1);
  alignas(kCacheLine) std::array<int32_t, kPanel / 2> pairs;
  Bf16* panel = cache.keys + position / kPanel * kPanel * depth + position % kPanel * 2;
  for (int64_t e = 0; e < width; e += kPanel) {
    _mm512_store_si512(pairs.data(), Rounded(key + e, width - e, one));
    for (const int32_t pair : pairs) {
      std::memcpy(panel, &pair, sizeof(pair));
      panel += kPair;
    }
  }
  // Every second number; the others are the neighbour's, whom another thread may store.
  const bool odd = position % 2 != 0;
  const __mmask32 own = odd ? 0xAAAAAAAA : 0x55555555;
  for (int64_t e = 0; e < width; e += 16) {
    const __m512 numbers = _mm512_maskz_loadu_ps(FirstLanes(width - e), value + e);
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(numbers));
    __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, rounded);
    if (odd) wide = _mm512_maskz_slli_epi32(kAll, wide, 16);
    Bf16* to = cache.values + e / kPanel * kPanel * cache.positions + position / 2 * kPair +
               e % kPanel * 2;
    _mm512_mask_storeu_epi16(to, own, wide);
  }
}

void AttendBf16(const Bf16HeadRows& head) {
  const auto rows = static_cast<int64_t>(head.rows.size());
  const Scratch scratch = MakeScratch(head);
  RoundQueries(head, scratch);
  for (int64_t k = 0; k < head.keys.count; k += kPanel) {
    const Bf16* panel = head.cache.keys + head.keys.PositionOf(k) * scratch.depth;
    ForTiles(rows, [&](int64_t row, size_t count) { kScorePanel[count](scratch, row, panel, k); });
  }
  for (int64_t i = 0; i < rows; ++i) {
    scratch.factors[i] = Softmax(scratch.scores + i * scratch.row, scratch.weights(i),
                                 head.keys.count, head.rows[static_cast<size_t>(i)]);
  }
  for (int64_t e = 0; e < head.width; e += kPanel) {
    ForTiles(rows, [&](int64_t row, size_t count) { kMixValues[count](head, scratch, row, e); });
  }
}

#else

void StoreBf16(const Bf16Cache&, int64_t, const float*, const float*, int64_t) { CHECK(false); }
void AttendBf16(const Bf16HeadRows&) { CHECK(false); }

#endif

}  // namespace kibitz::nn
