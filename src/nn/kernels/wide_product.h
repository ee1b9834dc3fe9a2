// Products of matrices that lie in cache as they are, nothing packed: what a layer multiplies tap
// by tap. Columns are whole vectors; rows and depth may be any number.
//
//   MultiplyWide({.a = {v, v_row}, .b = u, .b_row = n, .c = m, .c_row = n,
//                 .rows = 32, .depth = 64, .columns = 64, .add = false});    // m = v u
#pragma once

#include <cstdint>

#include "nn/kernels/lanes.h"
#include "nn/kernels/small_product.h"

namespace kibitz::nn {

struct WideProduct {
  Strided a;                 // (rows, depth)
  const float* b = nullptr;  // (depth, columns), rows b_row apart.
  int64_t b_row = 0;
  float* c = nullptr;  // (rows, columns), rows c_row apart.
  int64_t c_row = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;  // A multiple of kLanes.
  bool add = false;     // c += a b, else c = a b.
};

// Rows whose sums stay in registers: there are 32 of them with AVX-512, else 16.
#if defined(__AVX512F__)
inline constexpr int64_t kWideRows = 8;
#else
inline constexpr int64_t kWideRows = 6;
#endif

// The sums of kRows rows of one vector of columns, one member each; see TileSums.
template <int64_t kRows>
struct NarrowSums {
  Lanes own{};
  NarrowSums<kRows - 1> next;

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
};
template <>
struct NarrowSums<0> {
  void Read(const float*, int64_t) {}
  void Add(const float*, int64_t, Lanes) {}
  void Write(float*, int64_t) const {}
};

// As MultiplyRows, of one vector of columns.
template <int64_t kRows>
inline void MultiplyNarrowRows(const Strided& a, const float* b, int64_t b_row, int64_t depth,
                               float* c, int64_t c_row, bool add) {
  NarrowSums<kRows> sums;
  if (add) sums.Read(c, c_row);
  const float* column = a.data;
  const int64_t a_row = a.row;
  const int64_t a_column = a.column;
  for (int64_t k = 0; k < depth; ++k, column += a_column, b += b_row) {
    sums.Add(column, a_row, Load(b));
  }
  sums.Write(c, c_row);
}

// kRows rows of all columns.
template <int64_t kRows>
inline void MultiplyStrip(const WideProduct& p, int64_t row) {
  const Strided a = {p.a.data + row * p.a.row, p.a.row, p.a.column};
  float* c = p.c + row * p.c_row;
  int64_t column = 0;
  for (; column + kTileColumns <= p.columns; column += kTileColumns) {
    MultiplyRows<kRows>(a, p.b + column, p.b_row, p.depth, c + column, p.c_row, p.add);
  }
  if (column < p.columns) {
    MultiplyNarrowRows<kRows>(a, p.b + column, p.b_row, p.depth, c + column, p.c_row, p.add);
  }
}

inline void MultiplyWide(const WideProduct& p) {
  int64_t row = 0;
  for (; row + kWideRows <= p.rows; row += kWideRows) MultiplyStrip<kWideRows>(p, row);
  for (; row + 4 <= p.rows; row += 4) MultiplyStrip<4>(p, row);
  for (; row < p.rows; ++row) MultiplyStrip<1>(p, row);
}

}  // namespace kibitz::nn
