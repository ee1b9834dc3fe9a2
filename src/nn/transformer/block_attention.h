// Attention within a short block of rows that all see each other, one head at a time: what a
// network over the sixteen cells of a board needs, for play and for training. Letters: S rows of
// the block, E head width.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/lanes.h"
#include "nn/kernels/wide_product.h"

namespace kibitz::nn {

// c = a b, or c += a b. a: (rows, inner); b: (inner, columns), rows b_row apart; c rows c_row
// apart.
inline void MultiplySmall(const Strided& a, const float* b, int64_t b_row, float* c, int64_t c_row,
                          int64_t rows, int64_t inner, int64_t columns, bool add) {
  const int64_t whole = columns - columns % kLanes;
  const auto multiply = [&](int64_t from, int64_t count) {
    MultiplyWide({.a = a,
                  .b = b + from,
                  .b_row = b_row,
                  .c = c + from,
                  .c_row = c_row,
                  .rows = rows,
                  .depth = inner,
                  .columns = count,
                  .add = add});
  };
  multiply(0, whole);
  if (whole == columns) return;
  // The last columns once more with those before them, where that makes a whole vector.
  if (whole > 0 && !add) return multiply(columns - kLanes, kLanes);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = whole; j < columns; ++j) {
      float sum = add ? c[i * c_row + j] : 0;
      for (int64_t n = 0; n < inner; ++n) {
        sum += a.data[i * a.row + n * a.column] * b[n * b_row + j];
      }
      c[i * c_row + j] = sum;
    }
  }
}

// (rows, columns) with rows from_row apart, to (columns, rows) without gaps.
inline void TransposeInto(const float* from, int64_t from_row, float* to, int64_t rows,
                          int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * from_row + j];
  }
}

// The softmax of scale * row, in place.
inline void SoftmaxRow(float* row, int64_t size, float scale) {
  const int64_t whole = size - size % kLanes;
  Lanes mosts = Spread(row[0]);
  for (int64_t i = 0; i < whole; i += kLanes) mosts = Larger(mosts, Load(row + i));
  float most = row[0];
  for (int64_t lane = 0; lane < kLanes; ++lane) most = std::max(most, mosts[lane]);
  for (int64_t i = whole; i < size; ++i) most = std::max(most, row[i]);
  Lanes sums{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Lanes value = Exp((Load(row + i) - most) * scale);
    Store(row + i, value);
    sums += value;
  }
  float sum = Sum(sums);
  for (int64_t i = whole; i < size; ++i) sum += row[i] = std::exp((row[i] - most) * scale);
  const float factor = 1 / sum;
  for (int64_t i = 0; i < size; ++i) row[i] *= factor;
}

// One query head of one block.
struct BlockHead {
  const float* q = nullptr;  // (S, E), rows q_row apart.
  int64_t q_row = 0;
  const float* k_transposed =
      nullptr;               // (E, S): TransposeInto of the keys, for all heads that share it.
  const float* v = nullptr;  // (S, E), rows v_row apart.
  int64_t v_row = 0;
  float* out = nullptr;  // (S, E), rows out_row apart.
  int64_t out_row = 0;
};

// out = softmax(q k / sqrt(E)) v. `shares` gets the softmax, (S, S).
inline void AttendBlock(const BlockHead& head, int64_t s, int64_t e, float* shares) {
  MultiplySmall({head.q, head.q_row, 1}, head.k_transposed, s, shares, s, s, e, s, false);
  const float scale = 1 / std::sqrt(static_cast<float>(e));
  for (int64_t i = 0; i < s; ++i) SoftmaxRow(shares + i * s, s, scale);
  MultiplySmall({shares, s, 1}, head.v, head.v_row, head.out, head.out_row, s, s, e, false);
}

}  // namespace kibitz::nn
