// Products of small matrices that lie in cache, for attention: a tile of 6 rows at a time.
#pragma once

#include <cstdint>

#include "nn/kernels/lanes.h"

namespace kibitz::nn {

// Columns of a tile; matrices are padded to a multiple of it.
inline constexpr int64_t kTileColumns = 2 * kLanes;
inline constexpr int64_t kTileRows = 6;

// A matrix in memory, by the distances between its rows and between its columns.
struct Strided {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
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
};
template <>
struct TileSums<0> {
  void Read(const float*, int64_t) {}
  void Add(const float*, int64_t, Lanes, Lanes) {}
  void Write(float*, int64_t) const {}
};

template <int64_t kRows>
inline void MultiplyRows(const Strided& a, const float* b, int64_t b_row, int64_t depth, float* c,
                         int64_t c_row, bool add) {
  TileSums<kRows> sums;
  if (add) sums.Read(c, c_row);
  const float* column = a.data;
  const int64_t a_row = a.row;
  const int64_t a_column = a.column;
  for (int64_t k = 0; k < depth; ++k, column += a_column, b += b_row) {
    sums.Add(column, a_row, Load(b), Load(b + kLanes));
  }
  sums.Write(c, c_row);
}

// c = a b or c += a b for at most kTileRows rows and kTileColumns columns. a: (rows, depth);
// b: (depth, columns), rows b_row apart; c rows c_row apart.
inline void MultiplyTile(int64_t rows, const Strided& a, const float* b, int64_t b_row,
                         int64_t depth, float* c, int64_t c_row, bool add) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return MultiplyRows<1>(a, b, b_row, depth, c, c_row, add);
    case 2:
      return MultiplyRows<2>(a, b, b_row, depth, c, c_row, add);
    case 3:
      return MultiplyRows<3>(a, b, b_row, depth, c, c_row, add);
    case 4:
      return MultiplyRows<4>(a, b, b_row, depth, c, c_row, add);
    case 5:
      return MultiplyRows<5>(a, b, b_row, depth, c, c_row, add);
    default:
      return MultiplyRows<6>(a, b, b_row, depth, c, c_row, add);
  }
}

}  // namespace kibitz::nn
