// The register tile of our float matrix products: a few rows of two vectors each, whose sums stay
// in registers. The packed products of linear.h and the products in cache of cached_gemm.h are
// made of it.
//
//   GemmTile({.a = {q, q_row}, .b = k, .b_row = kTileColumns, .c = scores, .c_row = keys,
//             .rows = 6, .depth = 64});    // scores = q k
#pragma once

#include <cstdint>

#include "nn/kernels/lanes.h"

namespace kibitz::nn {

// Columns of a tile; packed matrices are padded to a multiple of it.
inline constexpr int64_t kTileColumns = 2 * kLanes;
inline constexpr int64_t kTileRows = 6;

// A matrix in memory, by the distances between its rows and between its columns.
struct Strided {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
};

// c = a b or c += a b.
struct Gemm {
  Strided a = {};            // (rows, depth)
  const float* b = nullptr;  // (depth, columns), rows b_row apart.
  int64_t b_row = 0;
  float* c = nullptr;  // (rows, columns), rows c_row apart.
  int64_t c_row = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = kTileColumns;
  bool add = false;  // c += a b, else c = a b.
};

// The sums of kRows rows of a tile, one member each: compilers keep members in registers, but not
// always an array.
template <int64_t kRows>
struct TileSums {
  Lanes left{};
  Lanes right{};
  TileSums<kRows - 1> next;

  void Read(const float* c, int64_t c_row) {
    left = Load(c);
    right = Load(c + kLanes);
    next.Read(c + c_row, c_row);
  }
  void Add(const float* a, int64_t a_row, Lanes b_left, Lanes b_right) {
    const Lanes factor = Spread(*a);
    left += factor * b_left;
    right += factor * b_right;
    next.Add(a + a_row, a_row, b_left, b_right);
  }
  void Write(float* c, int64_t c_row) const {
    Store(c, left);
    Store(c + kLanes, right);
    next.Write(c + c_row, c_row);
  }
  // Calls body(row, column, sums) for every vector.
  template <typename Body>
  [[gnu::always_inline]] void ForEach(const Body& body, int64_t row = 0) const {
    body(row, 0, left);
    body(row, kLanes, right);
    next.ForEach(body, row + 1);
  }
};
template <>
struct TileSums<0> {
  void Read(const float*, int64_t) {}
  void Add(const float*, int64_t, Lanes, Lanes) {}
  void Write(float*, int64_t) const {}
  template <typename Body>
  void ForEach(const Body&, int64_t) const {}
};

// The first kRows rows and kTileColumns columns of a product, in one pass over the depth.
template <int64_t kRows>
[[gnu::always_inline]] inline void GemmRows(const Gemm& gemm) {
  TileSums<kRows> sums;
  float* const c = gemm.c;
  const int64_t c_row = gemm.c_row;
  if (gemm.add) sums.Read(c, c_row);
  const float* a = gemm.a.data;
  const int64_t a_row = gemm.a.row;
  const int64_t a_column = gemm.a.column;
  const float* b = gemm.b;
  const int64_t b_row = gemm.b_row;
  const int64_t depth = gemm.depth;
  for (int64_t k = 0; k < depth; ++k, a += a_column, b += b_row) {
    sums.Add(a, a_row, Load(b), Load(b + kLanes));
  }
  sums.Write(c, c_row);
}

// A product of at most kMost rows and exactly kTileColumns columns. Always inlined, so that strides
// known at a call are constants in its loop.
template <int64_t kMost>
[[gnu::always_inline]] inline void GemmUpTo(const Gemm& gemm) {
  if constexpr (kMost > 1) {
    if (gemm.rows < kMost) return GemmUpTo<kMost - 1>(gemm);
  }
  GemmRows<kMost>(gemm);
}

[[gnu::always_inline]] inline void GemmTile(const Gemm& gemm) { GemmUpTo<kTileRows>(gemm); }

}  // namespace kibitz::nn
