// Products of matrices quantised to 7 bits, a tile of rows at a time: activations are 1 to 127 with
// 64 for zero, weights -63 to 63. Four such products always fit a 16-bit sum, so two of the fast
// 8-bit multiplications share one widening: about twice the speed of floats with AVX2. With
// AVX-VNNI or AVX-512 VNNI one instruction does all of that, with bit-identical results. Each
// kInt8Group neighbours of a row share a scale.
#pragma once

#include <cstdint>

namespace kibitz::nn {

inline constexpr int64_t kInt8Group = 128;
inline constexpr int64_t kInt8Rows = 4;       // Rows of a tile.
inline constexpr int64_t kInt8Columns = 16;   // Columns of a panel.
inline constexpr int64_t kInt8MaxPanels = 4;  // Of one product.
inline constexpr int kInt8Max = 63;
inline constexpr int kInt8Zero = 64;

// Where number k (below kInt8Group) of a row or column lies in its group.
constexpr int64_t Int8RowPlace(int64_t row, int64_t k) {
  return (k / 4) * (4 * kInt8Rows) + row * 4 + k % 4;
}
constexpr int64_t Int8ColumnPlace(int64_t column, int64_t k) {
  return (k / 4) * (4 * kInt8Columns) + column * 4 + k % 4;
}
inline constexpr int64_t kInt8RowGroupBytes = kInt8Group * kInt8Rows;
inline constexpr int64_t kInt8ColumnGroupBytes = kInt8Group * kInt8Columns;

// Sixteen columns of weights.
struct Int8Panel {
  const int8_t* numbers = nullptr;  // kInt8ColumnGroupBytes for each group.
  const float* scales = nullptr;    // kInt8Columns for each group.
  const int32_t* zeros = nullptr;   // The same: -kInt8Zero times the sum of the column's numbers.
};
// Four rows of activations. With two planes, each group of weights meets two groups of these: the
// rounded activations and the rounding error.
struct Int8RowTile {
  const uint8_t* numbers = nullptr;  // kInt8RowGroupBytes for each group.
  const float* scales = nullptr;     // kInt8Rows for each group.
};

// c = a b or c += a b, for one to kInt8MaxPanels panels.
struct Int8Gemm {
  Int8RowTile a = {};
  Int8Panel b = {};    // The first panel.
  int64_t rows = 0;    // Of the tile: 1 to kInt8Rows.
  int64_t groups = 0;  // Of weights.
  int64_t planes = 1;  // Of activations.
  int64_t panels = 1;
  int64_t panel_groups = 0;  // Groups from one panel to the next.
  float* c = nullptr;        // (rows, kInt8Columns) for each panel,
  int64_t c_panel = 0;       // so far apart.
  bool add = false;          // c += a b, else c = a b.
};

void Int8GemmTile(const Int8Gemm& gemm);
// The same in plain arithmetic: the reference in tests, and what runs without AVX2.
void Int8GemmTilePlain(const Int8Gemm& gemm);

}  // namespace kibitz::nn
