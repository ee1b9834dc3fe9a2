// Attention over keys and values in bfloat16, by the dot products of AVX-512 BF16; for one head of
// a few rows. attention.h calls it where HasAvx512Bf16(). Letters: E width of a head, T positions.
//
// Queries, keys and the weights of the softmax are rounded to 8 bits, sums are floats. A row's
// result does not depend on the other rows.
#pragma once

#include <cstdint>
#include <span>

#include "nn/kernels/bf16.h"
#include "nn/transformer/attention_keys.h"

namespace kibitz::nn {

// One layer's head. Numbers behind E are 0.
struct Bf16Cache {
  Bf16* keys = nullptr;    // (T / 32, E / 2, 32, 2): panels of positions, pairs of numbers.
  Bf16* values = nullptr;  // (E / 32, T / 2, 32, 2): panels of numbers, pairs of positions.
  int64_t positions = 0;   // T

  // E and T are rounded up to this.
  static constexpr int64_t kPanel = kKeyPanel;
};

// Stores a position's key and value, (E) each. Threads may store different positions at a time.
void StoreBf16(const Bf16Cache& cache, int64_t position, const float* key, const float* value,
               int64_t width);

struct Bf16HeadRows {
  Bf16Cache cache = {};
  int64_t width = 0;               // E
  KeyRange keys = {};              // PositionOf(count - 1) is in the cache.
  std::span<const RowKeys> rows;   // Of each row.
  const float* queries = nullptr;  // (rows, E), query_row apart.
  int64_t query_row = 0;
  float* out = nullptr;  // (rows, E), out_row apart.
  int64_t out_row = 0;
};
// out = softmax(q k / sqrt(E)) v
void AttendBf16(const Bf16HeadRows& head);

}  // namespace kibitz::nn
