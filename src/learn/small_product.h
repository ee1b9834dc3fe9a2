// Products of small matrices that lie in cache, for attention: a tile of 6 rows at a time.
#pragma once

#include <cstdint>

#include "learn/lanes.h"

namespace kibitz::learn {

// Columns of a tile; matrices are padded to a multiple of it.
inline constexpr int64_t kTileColumns = 2 * kLanes;
inline constexpr int64_t kTileRows = 6;

// A matrix in memory, by the distances between its rows and between its columns.
struct Strided {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
};

template <int64_t kRows>
inline void MultiplyRows(const Strided& a, const float* b, int64_t b_row, int64_t depth, float* c,
                         int64_t c_row, bool add) {
  Lanes sums[kRows][2];
  for (int64_t i = 0; i < kRows; ++i) {
    sums[i][0] = add ? Load(c + i * c_row) : Lanes{};
    sums[i][1] = add ? Load(c + i * c_row + kLanes) : Lanes{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes left = Load(b + k * b_row);
    const Lanes right = Load(b + k * b_row + kLanes);
    for (int64_t i = 0; i < kRows; ++i) {
      const Lanes factor = Spread(a.data[i * a.row + k * a.column]);
      sums[i][0] += factor * left;
      sums[i][1] += factor * right;
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    Store(c + i * c_row, sums[i][0]);
    Store(c + i * c_row + kLanes, sums[i][1]);
  }
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

}  // namespace kibitz::learn
