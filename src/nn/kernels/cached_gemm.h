// Products of small matrices that lie in cache as they are, by the thread that calls: nothing is
// packed. Attention within a board and the taps of a training convolution use it; linear.h
// multiplies by packed weights with a team of threads.
//
//   CachedGemm({.a = {v, v_row}, .b = u, .b_row = n, .c = m, .c_row = n,
//               .rows = 32, .depth = 64, .columns = n});    // m = v u
#pragma once

#include <cstdint>

#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn {

// Rows whose sums stay in registers: there are 32 of them with AVX-512, else 16.
#if defined(__AVX512F__)
inline constexpr int64_t kCachedRows = 8;
#else
inline constexpr int64_t kCachedRows = 6;
#endif

// The sums of kRows rows of one vector of columns, one member each; see TileSums.
template <int64_t kRows>
struct VectorSums {
  Lanes own{};
  VectorSums<kRows - 1> next;

  void Read(const float* c, int64_t c_row) {
    own = Load(c);
    next.Read(c + c_row, c_row);
  }
  void Add(const float* a, int64_t a_row, Lanes b) {
    own += Spread(*a) * b;
    next.Add(a + a_row, a_row, b);
  }
  void Write(float* c, int64_t c_row) const {
    Store(c, own);
    next.Write(c + c_row, c_row);
  }
  template <typename Body>
  [[gnu::always_inline]] void ForEach(const Body& body, int64_t row = 0) const {
    body(row, 0, own);
    next.ForEach(body, row + 1);
  }
};
template <>
struct VectorSums<0> {
  void Read(const float*, int64_t) {}
  void Add(const float*, int64_t, Lanes) {}
  void Write(float*, int64_t) const {}
  template <typename Body>
  void ForEach(const Body&, int64_t) const {}
};

// As GemmRows, of one vector of columns.
template <int64_t kRows>
[[gnu::always_inline]] inline void GemmVectorRows(const Gemm& gemm) {
  VectorSums<kRows> sums;
  float* const c = gemm.c;
  const int64_t c_row = gemm.c_row;
  if (gemm.add) sums.Read(c, c_row);
  const float* a = gemm.a.data;
  const int64_t a_row = gemm.a.row;
  const int64_t a_column = gemm.a.column;
  const float* b = gemm.b;
  const int64_t b_row = gemm.b_row;
  const int64_t depth = gemm.depth;
  for (int64_t k = 0; k < depth; ++k, a += a_column, b += b_row) sums.Add(a, a_row, Load(b));
  sums.Write(c, c_row);
}

// kRows rows from `row` on, all columns; their number is a multiple of kLanes.
template <int64_t kRows>
inline void GemmStrip(Gemm gemm, int64_t row) {
  gemm.a.data += row * gemm.a.row;
  gemm.c += row * gemm.c_row;
  int64_t left = gemm.columns;
  for (; left >= kTileColumns; left -= kTileColumns) {
    GemmRows<kRows>(gemm);
    gemm.b += kTileColumns;
    gemm.c += kTileColumns;
  }
  if (left > 0) GemmVectorRows<kRows>(gemm);
}

// A product whose columns are whole vectors.
inline void GemmVectors(const Gemm& gemm) {
  int64_t row = 0;
  for (; row + kCachedRows <= gemm.rows; row += kCachedRows) GemmStrip<kCachedRows>(gemm, row);
  for (; row + 4 <= gemm.rows; row += 4) GemmStrip<4>(gemm, row);
  for (; row < gemm.rows; ++row) GemmStrip<1>(gemm, row);
}

// Any number of rows and columns; whole vectors of columns are fast.
inline void CachedGemm(const Gemm& gemm) {
  Gemm part = gemm;
  part.columns -= gemm.columns % kLanes;
  GemmVectors(part);
  const int64_t whole = part.columns;
  if (whole == gemm.columns) return;
  if (whole > 0 && !gemm.add) {
    // The last columns once more with those before them, where that makes a whole vector.
    part.b += gemm.columns - kLanes;
    part.c += gemm.columns - kLanes;
    part.columns = kLanes;
    return GemmVectors(part);
  }
  for (int64_t i = 0; i < gemm.rows; ++i) {
    for (int64_t j = whole; j < gemm.columns; ++j) {
      float* const c = gemm.c + i * gemm.c_row + j;
      float sum = gemm.add ? *c : 0;
      for (int64_t k = 0; k < gemm.depth; ++k) {
        sum += gemm.a.data[i * gemm.a.row + k * gemm.a.column] * gemm.b[k * gemm.b_row + j];
      }
      *c = sum;
    }
  }
}

}  // namespace kibitz::nn
