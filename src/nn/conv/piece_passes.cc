#include "nn/conv/piece_passes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kibitz::nn {

float PieceTotals::Of(int64_t board) const {
  float sum = 0;
  for (const float lane : lanes[board]) sum += lane;
  return sum;
}

void PieceMoments::Finish(const PieceNorm& norm, PieceSums& to) const {
  const auto count = static_cast<float>(norm.count);
  for (int64_t board = 0; board < kPieceBoards; ++board) {
    const float mean = norm.has_mean ? sums.Of(board) / count : 0;
    const float variance = std::max(0.0F, squares.Of(board) / count - mean * mean);
    to.mean[board] = mean;
    to.factor[board] = 1 / std::sqrt(variance + norm.epsilon);
    to.scale[board] = to.factor[board];
  }
}

PieceSums PieceSums::OfNormalised() const {
  PieceSums sums = *this;
  std::fill_n(sums.mean, kPieceBoards, 0.0F);
  std::fill_n(sums.factor, kPieceBoards, 1.0F);
  return sums;
}

void PrefetchRows(const Bf16* rows, int64_t channels) {
  if (rows == nullptr) return;
  constexpr int64_t kLine = kCacheLine / sizeof(Bf16);
  for (int64_t i = 0; i < kPieceBoards * channels; i += kLine) {
    __builtin_prefetch(rows + i, 0, 2);
  }
}

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

// GCC 12 takes the undefined operands of its own intrinsics for variables without a value.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace {

constexpr int64_t kVector = 16;  // Floats of a vector.

KIBITZ_AVX512_BF16 inline __m512 LoadRow(const float* from) { return _mm512_loadu_ps(from); }
KIBITZ_AVX512_BF16 inline __m512 LoadRow(const Bf16* from) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// Two vectors as one of bfloat16.
KIBITZ_AVX512_BF16 inline __m512i Round(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
KIBITZ_AVX512_BF16 inline void StoreRow(Bf16* to, __m512i row) { _mm512_storeu_si512(to, row); }
KIBITZ_AVX512_BF16 inline void StoreHalf(Bf16* to, __m512 row) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(row)));
}

// (a0, b0, a1, b1, ...) of the lower halves of a and b, and of the upper ones.
alignas(64) constexpr uint16_t kLowPairs[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
alignas(64) constexpr uint16_t kHighPairs[32] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                                 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
// (x0, x16, x1, x17, ...)
alignas(64) constexpr uint16_t kHalvesToPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                     21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

// Element j of vector i becomes element i of vector j; 32 bits each.
KIBITZ_AVX512_BF16 inline void Transpose(__m512i* v) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Boards' statistics as a multiplication and an addition: (x - mean) * factor = x * scale + shift.
struct Affine {
  float scale[kPieceBoards];
  float shift[kPieceBoards];

  explicit Affine(const PieceSums& sums) {
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      scale[board] = sums.factor[board];
      shift[board] = -sums.mean[board] * sums.factor[board];
    }
  }
  KIBITZ_AVX512_BF16 __m512 Normalised(int64_t board, __m512 x) const {
    return _mm512_fmadd_ps(x, _mm512_set1_ps(scale[board]), _mm512_set1_ps(shift[board]));
  }
};

// norm(x) of 16 channels of a board.
struct NormVector {
  __m512 weight;
  __m512 bias;

  KIBITZ_AVX512_BF16 NormVector(const PieceNorm& norm, int64_t place)
      : weight(_mm512_loadu_ps(norm.weight + place)), bias(_mm512_loadu_ps(norm.bias + place)) {}
  KIBITZ_AVX512_BF16 __m512 Of(__m512 normalised) const {
    return _mm512_fmadd_ps(normalised, weight, bias);
  }
  KIBITZ_AVX512_BF16 __m512 Of(const Affine& boards, int64_t board, __m512 x) const {
    return Of(boards.Normalised(board, x));
  }
};

template <typename T>
KIBITZ_AVX512_BF16 void NormaliseRows(const PieceNorm& norm, const PieceSums& sums, const T* x,
                                      Bf16* y) {
  const int64_t channels = norm.channels;
  const Affine boards(sums);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t c = 0; c < channels; c += 2 * kVector) {
      const NormVector low(norm, square * channels + c);
      const NormVector high(norm, square * channels + c + kVector);
      for (int64_t board = 0; board < kPieceBoards; ++board) {
        const int64_t at = (square * kPieceBoards + board) * channels + c;
        StoreRow(y + at, Round(low.Of(boards, board, LoadRow(x + at)),
                               high.Of(boards, board, LoadRow(x + at + kVector))));
      }
    }
  }
}

KIBITZ_AVX512_BF16 void NormaliseBoth(const PieceNorm& norm, const PieceSums& sums, const float* x,
                                      Bf16* y, Bf16* normalised) {
  const int64_t channels = norm.channels;
  const Affine boards(sums);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t c = 0; c < channels; c += 2 * kVector) {
      const NormVector low(norm, square * channels + c);
      const NormVector high(norm, square * channels + c + kVector);
      for (int64_t board = 0; board < kPieceBoards; ++board) {
        const int64_t at = (square * kPieceBoards + board) * channels + c;
        const __m512 a = boards.Normalised(board, LoadRow(x + at));
        const __m512 b = boards.Normalised(board, LoadRow(x + at + kVector));
        StoreRow(normalised + at, Round(a, b));
        StoreRow(y + at, Round(low.Of(a), high.Of(b)));
      }
    }
  }
}

template <typename T>
KIBITZ_AVX512_BF16 void NormaliseColumns(const PieceNorm& norm, const PieceSums& sums, const T* x,
                                         Bf16* y) {
  const int64_t channels = norm.channels;
  const Affine boards(sums);
  const __m512i order = _mm512_load_si512(kHalvesToPairs);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t c = 0; c < channels; c += kVector) {
      const NormVector normed(norm, square * channels + c);
      const T* from = x + square * kPieceBoards * channels + c;
      __m512i pairs[16];
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair, from += 2 * channels) {
        const __m512 even = normed.Of(boards, 2 * pair, LoadRow(from));
        const __m512 odd = normed.Of(boards, 2 * pair + 1, LoadRow(from + channels));
        pairs[pair] = _mm512_permutexvar_epi16(order, Round(even, odd));
      }
      Transpose(pairs);
      Bf16* to = y + (square * channels + c) * kPieceBoards;
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) StoreRow(to + i * kPieceBoards, pairs[i]);
    }
  }
}

// gelu(x) = x Phi(x) and its slope Phi(x) + x phi(x) are parabolas between the quarters of |x|: to
// 2e-4, less than the rounding to bfloat16 by far. From 3.875 on Phi and the slope are 1.
struct GeluTables {
  static constexpr int kEntries = 16;  // As many as a register holds.
  static constexpr float kEnd = 15.499F;

  // With f from -0.5 to 0.5 quarters away from an entry: c0 + c1 f + c2 f^2.
  alignas(64) float phi[3][kEntries];
  alignas(64) float slope[3][kEntries];

  GeluTables() {
    for (int i = 0; i < kEntries; ++i) {
      constexpr double kNode = 0.4330127018922193;  // Of Chebyshev's polynomial.
      double phis[3];
      double slopes[3];
      for (int k = 0; k < 3; ++k) {
        const double f = (k - 1) * kNode;
        const double x = (i + f) / 4;
        const double last = i == kEntries - 1 ? f + 0.5 : 0;  // Rises to 1 in the last entry.
        const double p = 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
        const double s = p + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
        phis[k] = p + last * (1 - p);
        slopes[k] = s + last * (1 - s);
      }
      Fit(phis, kNode, i, phi);
      Fit(slopes, kNode, i, slope);
    }
  }

 private:
  static void Fit(const double* y, double node, int entry, float (*to)[kEntries]) {
    to[0][entry] = static_cast<float>(y[1]);
    to[1][entry] = static_cast<float>((y[2] - y[0]) / (2 * node));
    to[2][entry] = static_cast<float>((y[2] + y[0] - 2 * y[1]) / (2 * node * node));
  }
};

// The tables in registers.
struct GeluVectors {
  __m512 phi[3];
  __m512 slope[3];

  KIBITZ_AVX512_BF16 GeluVectors() {
    static const GeluTables tables;
    for (int i = 0; i < 3; ++i) {
      phi[i] = _mm512_load_ps(tables.phi[i]);
      slope[i] = _mm512_load_ps(tables.slope[i]);
    }
  }
  KIBITZ_AVX512_BF16 static __m512 Parabola(const __m512* table, __m512i entry, __m512 f) {
    const __m512 c1 = _mm512_permutexvar_ps(entry, table[1]);
    const __m512 inner = _mm512_fmadd_ps(f, _mm512_permutexvar_ps(entry, table[2]), c1);
    return _mm512_fmadd_ps(f, inner, _mm512_permutexvar_ps(entry, table[0]));
  }
  KIBITZ_AVX512_BF16 void Gelu(__m512 x, __m512& y, __m512& dy) const {
    // Adding 2^23 rounds to a whole number, which the lowest bits then hold.
    const __m512 magic = _mm512_set1_ps(8388608.0F);
    const __m512 quarters = _mm512_min_ps(_mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(4)),
                                          _mm512_set1_ps(GeluTables::kEnd));
    const __m512 rounded = _mm512_add_ps(quarters, magic);
    const __m512 f = _mm512_sub_ps(quarters, _mm512_sub_ps(rounded, magic));
    const __m512i entry = _mm512_castps_si512(rounded);
    __m512 p = Parabola(phi, entry, f);
    __m512 s = Parabola(slope, entry, f);
    // Both are 1 minus themselves on the other side of 0.
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    const __m512 one = _mm512_set1_ps(1);
    p = _mm512_mask_sub_ps(p, negative, one, p);
    dy = _mm512_mask_sub_ps(s, negative, one, s);
    y = _mm512_mul_ps(x, p);
  }
};

// Where dy * slope comes from: a gradient as it is ...
struct PlainSource {
  const float* dy;
  int64_t channels;

  KIBITZ_AVX512_BF16 __m512 At(int64_t square, int64_t board, int64_t c) const {
    return _mm512_loadu_ps(dy + (square * kPieceBoards + board) * channels + c);
  }
};

// ... or the gradient of a norm's input. With h = (x - mean) factor and g = dy weight: dx = factor
// (g - mean(g) - h mean(g h)) = scale g - (a + b x), where a and b are a board's.
template <typename T>
struct NormSource {
  const PieceNorm& norm;
  const float* dy;
  const T* x;
  float scale[kPieceBoards];
  float a[kPieceBoards];
  float b[kPieceBoards];

  NormSource(const PieceNorm& norm_in, const PieceSums& sums, const NormBackwardSums& totals,
             const float* dy_in, const T* x_in)
      : norm(norm_in), dy(dy_in), x(x_in) {
    const auto count = static_cast<float>(norm.count);
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      const float mean_g = norm.has_mean ? totals.g.Of(board) / count : 0;
      scale[board] = sums.scale[board];
      b[board] = scale[board] * sums.factor[board] * totals.gh.Of(board) / count;
      a[board] = scale[board] * mean_g - b[board] * sums.mean[board];
    }
  }
  KIBITZ_AVX512_BF16 __m512 At(int64_t square, int64_t board, int64_t c) const {
    const int64_t at = (square * kPieceBoards + board) * norm.channels + c;
    const __m512 weight = _mm512_loadu_ps(norm.weight + square * norm.channels + c);
    const __m512 g = _mm512_mul_ps(_mm512_loadu_ps(dy + at), weight);
    const __m512 away =
        _mm512_fmadd_ps(LoadRow(x + at), _mm512_set1_ps(b[board]), _mm512_set1_ps(a[board]));
    return _mm512_fmsub_ps(g, _mm512_set1_ps(scale[board]), away);
  }
};

template <typename Source>
KIBITZ_AVX512_BF16 void WriteGradients(const Source& source, const Bf16* slope, int64_t channels,
                                       const OutputGradients& to) {
  const __m512i low_pairs = _mm512_load_si512(kLowPairs);
  const __m512i high_pairs = _mm512_load_si512(kHighPairs);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t c = 0; c < channels; c += 2 * kVector) {
      __m512 low_sum = _mm512_loadu_ps(to.bias + c);
      __m512 high_sum = _mm512_loadu_ps(to.bias + c + kVector);
      for (int64_t board = 0; board < kPieceBoards; board += 2) {
        const int64_t at = (square * kPieceBoards + board) * channels + c;
        __m512i rows[2];
#pragma GCC unroll 2
        for (int64_t i = 0; i < 2; ++i) {
          const Bf16* slopes = slope + at + i * channels;
          const __m512 low = _mm512_mul_ps(source.At(square, board + i, c), LoadRow(slopes));
          const __m512 high =
              _mm512_mul_ps(source.At(square, board + i, c + kVector), LoadRow(slopes + kVector));
          low_sum = _mm512_add_ps(low_sum, low);
          high_sum = _mm512_add_ps(high_sum, high);
          rows[i] = Round(low, high);
          StoreRow(to.rows + at + i * channels, rows[i]);
        }
        Bf16* pairs = to.pairs + (square * kPieceBoards + board) * channels + 2 * c;
        StoreRow(pairs, _mm512_permutex2var_epi16(rows[0], low_pairs, rows[1]));
        StoreRow(pairs + 2 * kVector, _mm512_permutex2var_epi16(rows[0], high_pairs, rows[1]));
      }
      _mm512_storeu_ps(to.bias + c, low_sum);
      _mm512_storeu_ps(to.bias + c + kVector, high_sum);
    }
  }
}

template <typename T>
KIBITZ_AVX512_BF16 void SumSquareBackward(const NormBackwardFrom& from, const float* dy, const T* x,
                                          NormBackwardSums& totals, float* dweight, float* dbias) {
  const int64_t channels = from.norm.channels;
  const Affine boards(from.sums);
  for (int64_t c = 0; c < channels; c += 2 * kVector) {
    const int64_t place = from.square * channels + c;
    const __m512 weights[2] = {_mm512_loadu_ps(from.norm.weight + place),
                               _mm512_loadu_ps(from.norm.weight + place + kVector)};
    __m512 weight_sums[2] = {_mm512_loadu_ps(dweight + place),
                             _mm512_loadu_ps(dweight + place + kVector)};
    __m512 bias_sums[2] = {_mm512_loadu_ps(dbias + place),
                           _mm512_loadu_ps(dbias + place + kVector)};
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      __m512 sum_g = _mm512_load_ps(totals.g.lanes[board]);
      __m512 sum_gh = _mm512_load_ps(totals.gh.lanes[board]);
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t at = board * channels + c + i * kVector;
        const __m512 h = boards.Normalised(board, LoadRow(x + at));
        const __m512 out = _mm512_loadu_ps(dy + at);
        const __m512 g = _mm512_mul_ps(out, weights[i]);
        sum_g = _mm512_add_ps(sum_g, g);
        sum_gh = _mm512_fmadd_ps(g, h, sum_gh);
        weight_sums[i] = _mm512_fmadd_ps(out, h, weight_sums[i]);
        bias_sums[i] = _mm512_add_ps(bias_sums[i], out);
      }
      _mm512_store_ps(totals.g.lanes[board], sum_g);
      _mm512_store_ps(totals.gh.lanes[board], sum_gh);
    }
    for (int64_t i = 0; i < 2; ++i) {
      _mm512_storeu_ps(dweight + place + i * kVector, weight_sums[i]);
      _mm512_storeu_ps(dbias + place + i * kVector, bias_sums[i]);
    }
  }
}

KIBITZ_AVX512_BF16 void AddMoments(const float* x, int64_t channels, PieceMoments& moments) {
  for (int64_t board = 0; board < kPieceBoards; ++board, x += channels) {
    __m512 sum = _mm512_load_ps(moments.sums.lanes[board]);
    __m512 squares = _mm512_load_ps(moments.squares.lanes[board]);
    for (int64_t c = 0; c < channels; c += kVector) {
      const __m512 value = _mm512_loadu_ps(x + c);
      sum = _mm512_add_ps(sum, value);
      squares = _mm512_fmadd_ps(value, value, squares);
    }
    _mm512_store_ps(moments.sums.lanes[board], sum);
    _mm512_store_ps(moments.squares.lanes[board], squares);
  }
}

KIBITZ_AVX512_BF16 void GeluRows(const float* z, const float* bias, int64_t channels, Bf16* y,
                                 Bf16* slope, PieceMoments& moments) {
  const GeluVectors tables;
  for (int64_t c = 0; c < channels; c += 2 * kVector) {
    const __m512 biases[2] = {_mm512_loadu_ps(bias + c), _mm512_loadu_ps(bias + c + kVector)};
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      const int64_t at = board * channels + c;
      __m512 values[2];
      __m512 slopes[2];
      __m512 sum = _mm512_load_ps(moments.sums.lanes[board]);
      __m512 squares = _mm512_load_ps(moments.squares.lanes[board]);
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i) {
        tables.Gelu(_mm512_add_ps(_mm512_loadu_ps(z + at + i * kVector), biases[i]), values[i],
                    slopes[i]);
        sum = _mm512_add_ps(sum, values[i]);
        squares = _mm512_fmadd_ps(values[i], values[i], squares);
      }
      _mm512_store_ps(moments.sums.lanes[board], sum);
      _mm512_store_ps(moments.squares.lanes[board], squares);
      StoreRow(y + at, Round(values[0], values[1]));
      StoreRow(slope + at, Round(slopes[0], slopes[1]));
    }
  }
}

KIBITZ_AVX512_BF16 void AddGeluRows(const float* z, const float* bias, int64_t channels,
                                    const float* x, float* y, Bf16* slope) {
  const GeluVectors tables;
  for (int64_t c = 0; c < channels; c += kVector) {
    const __m512 biases = _mm512_loadu_ps(bias + c);
    for (int64_t at = c; at < kPieceBoards * channels; at += channels) {
      __m512 value;
      __m512 slopes;
      tables.Gelu(_mm512_add_ps(_mm512_loadu_ps(z + at), biases), value, slopes);
      if (x != nullptr) value = _mm512_add_ps(value, _mm512_loadu_ps(x + at));
      _mm512_storeu_ps(y + at, value);
      StoreHalf(slope + at, slopes);
    }
  }
}

KIBITZ_AVX512_BF16 void TransposeRows(const Bf16* x, int64_t channels, Bf16* y) {
  const __m512i order = _mm512_load_si512(kHalvesToPairs);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t c = 0; c < channels; c += kVector) {
      const Bf16* from = x + square * kPieceBoards * channels + c;
      __m512i pairs[16];
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair, from += 2 * channels) {
        const auto* even = reinterpret_cast<const __m256i*>(from);
        const auto* odd = reinterpret_cast<const __m256i*>(from + channels);
        const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(even)),
                                                _mm256_loadu_si256(odd), 1);
        pairs[pair] = _mm512_permutexvar_epi16(order, both);
      }
      Transpose(pairs);
      Bf16* to = y + (square * channels + c) * kPieceBoards;
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) StoreRow(to + i * kPieceBoards, pairs[i]);
    }
  }
}

KIBITZ_AVX512_BF16 void PairRows(const Bf16* x, int64_t channels, Bf16* y) {
  const __m512i low_pairs = _mm512_load_si512(kLowPairs);
  const __m512i high_pairs = _mm512_load_si512(kHighPairs);
  for (int64_t pair = 0; pair < 64 * kPieceBoards / 2; ++pair, x += 2 * channels) {
    for (int64_t c = 0; c < channels; c += 2 * kVector, y += 4 * kVector) {
      const __m512i even = _mm512_loadu_si512(x + c);
      const __m512i odd = _mm512_loadu_si512(x + channels + c);
      StoreRow(y, _mm512_permutex2var_epi16(even, low_pairs, odd));
      StoreRow(y + 2 * kVector, _mm512_permutex2var_epi16(even, high_pairs, odd));
    }
  }
}

KIBITZ_AVX512_BF16 void RoundRow(const float* x, int64_t count, Bf16* y) {
  int64_t i = 0;
  for (; i + kVector <= count; i += kVector) StoreHalf(y + i, _mm512_loadu_ps(x + i));
  for (; i < count; ++i) y[i] = ToBf16(x[i]);
}

KIBITZ_AVX512_BF16 void WriteRowsOfBoards(const float* x, int64_t boards, int64_t inputs,
                                          Bf16* rows) {
  const int64_t channels = PaddedPiece(inputs);
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      const float* from = x + (board * 64 + square) * inputs;
      for (int64_t c = 0; c < channels; c += kVector, rows += kVector) {
        const int64_t rest = board < boards ? std::clamp<int64_t>(inputs - c, 0, kVector) : 0;
        const auto mask = static_cast<__mmask16>((1U << rest) - 1);
        StoreHalf(rows, rest == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, from + c));
      }
    }
  }
}

template <typename T>
KIBITZ_AVX512_BF16 void WriteNormBackward(const NormSource<T>& source, const float* onto,
                                          float* dx) {
  const int64_t channels = source.norm.channels;
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      for (int64_t c = 0; c < channels; c += kVector) {
        const int64_t at = (square * kPieceBoards + board) * channels + c;
        __m512 value = source.At(square, board, c);
        if (onto != nullptr) value = _mm512_add_ps(value, _mm512_loadu_ps(onto + at));
        _mm512_storeu_ps(dx + at, value);
      }
    }
  }
}

}  // namespace

void SumPiece(const PieceNorm& norm, const float* x, PieceSums& sums) {
  PieceMoments moments;
  const int64_t size = kPieceBoards * norm.channels;
  for (int64_t square = 0; square < 64; ++square) {
    AddMoments(x + square * size, norm.channels, moments);
  }
  moments.Finish(norm, sums);
}

void NormalisePiece(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y) {
  NormaliseRows(norm, sums, x, y);
}
void NormalisePiece(const PieceNorm& norm, const PieceSums& sums, const Bf16* x, Bf16* y) {
  NormaliseRows(norm, sums, x, y);
}
void NormaliseAndKeep(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y,
                      Bf16* normalised) {
  NormaliseBoth(norm, sums, x, y, normalised);
}
void NormaliseTransposed(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y) {
  NormaliseColumns(norm, sums, x, y);
}
void NormaliseTransposed(const PieceNorm& norm, const PieceSums& sums, const Bf16* x, Bf16* y) {
  NormaliseColumns(norm, sums, x, y);
}
void TransposePiece(const Bf16* x, int64_t channels, Bf16* y) { TransposeRows(x, channels, y); }

void PairPiece(const Bf16* x, int64_t channels, Bf16* y) { PairRows(x, channels, y); }
void RoundNumbers(const float* x, int64_t count, Bf16* y) { RoundRow(x, count, y); }

void RowsOfBoards(const float* x, int64_t boards, int64_t inputs, Bf16* rows) {
  WriteRowsOfBoards(x, boards, inputs, rows);
}

void GeluSquare(const float* z, const float* bias, int64_t channels, Bf16* y, Bf16* slope,
                PieceMoments& moments) {
  GeluRows(z, bias, channels, y, slope, moments);
}
void AddGeluSquare(const float* z, const float* bias, int64_t channels, const float* x, float* y,
                   Bf16* slope) {
  AddGeluRows(z, bias, channels, x, y, slope);
}

void SlopeBackward(const float* dy, const Bf16* slope, int64_t channels,
                   const OutputGradients& to) {
  WriteGradients(PlainSource{dy, channels}, slope, channels, to);
}

void SumNormBackward(const NormBackwardFrom& from, const float* dy, const float* x,
                     NormBackwardSums& totals, float* dweight, float* dbias) {
  SumSquareBackward(from, dy, x, totals, dweight, dbias);
}
void SumNormBackward(const NormBackwardFrom& from, const float* dy, const Bf16* x,
                     NormBackwardSums& totals, float* dweight, float* dbias) {
  SumSquareBackward(from, dy, x, totals, dweight, dbias);
}

void NormBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                  const float* dy, const float* x, const float* onto, float* dx) {
  WriteNormBackward(NormSource<float>(norm, sums, totals, dy, x), onto, dx);
}
void NormBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                  const float* dy, const Bf16* x, const float* onto, float* dx) {
  WriteNormBackward(NormSource<Bf16>(norm, sums, totals, dy, x), onto, dx);
}
void NormSlopeBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                       const float* dy, const Bf16* x, const Bf16* slope,
                       const OutputGradients& to) {
  WriteGradients(NormSource<Bf16>(norm, sums, totals, dy, x), slope, norm.channels, to);
}

#pragma GCC diagnostic pop
#endif

}  // namespace kibitz::nn
