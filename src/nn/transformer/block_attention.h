// Attention within a short block of rows that all attend to each other, one head at a time, as in a
// network over the sixteen cells of a board. Play and training use it. Letters: S rows of the
// block, E width of a head.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cached_gemm.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn {

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
  Lanes maxima = Spread(row[0]);
  for (int64_t i = 0; i < whole; i += kLanes) maxima = Larger(maxima, Load(row + i));
  float max = row[0];
  for (int64_t lane = 0; lane < kLanes; ++lane) max = std::max(max, maxima[lane]);
  for (int64_t i = whole; i < size; ++i) max = std::max(max, row[i]);
  Lanes sums{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Lanes value = Exp((Load(row + i) - max) * scale);
    Store(row + i, value);
    sums += value;
  }
  float sum = Sum(sums);
  for (int64_t i = whole; i < size; ++i) sum += row[i] = std::exp((row[i] - max) * scale);
  const float factor = 1 / sum;
  for (int64_t i = 0; i < whole; i += kLanes) Store(row + i, Load(row + i) * factor);
  for (int64_t i = whole; i < size; ++i) row[i] *= factor;
}

// One query head of one block.
struct BlockHead {
  const float* q = nullptr;  // (S, E), rows q_row apart.
  int64_t q_row = 0;
  const float* k_transposed = nullptr;  // (E, S): TransposeInto of the keys.
  const float* v = nullptr;             // (S, E), rows v_row apart.
  int64_t v_row = 0;
  float* out = nullptr;  // (S, E), rows out_row apart.
  int64_t out_row = 0;
};

// out = softmax(q k / sqrt(E)) v. `shares` gets the softmax, (S, S).
inline void AttendBlock(const BlockHead& head, int64_t s, int64_t e, float* shares) {
  CachedGemm({.a = {.data = head.q, .row = head.q_row},
              .b = head.k_transposed,
              .b_row = s,
              .c = shares,
              .c_row = s,
              .rows = s,
              .depth = e,
              .columns = s});
  const float scale = 1 / std::sqrt(static_cast<float>(e));
  for (int64_t i = 0; i < s; ++i) SoftmaxRow(shares + i * s, s, scale);
  CachedGemm({.a = {.data = shares, .row = s},
              .b = head.v,
              .b_row = head.v_row,
              .c = head.out,
              .c_row = head.out_row,
              .rows = s,
              .depth = s,
              .columns = e});
}

}  // namespace kibitz::nn
