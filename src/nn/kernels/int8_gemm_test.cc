#include "nn/kernels/int8_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/random.h"
#include "nn/kernels/int8_gemm_256.h"

namespace kibitz::nn {
namespace {

struct Numbers {
  int64_t panels;
  int64_t groups;
  int64_t planes;
  std::vector<uint8_t> rows;
  std::vector<float> row_scales;
  std::vector<int8_t> columns;
  std::vector<float> column_scales;
  std::vector<int32_t> zeros;
};

Numbers Make(int64_t panels, int64_t groups, int64_t planes, const std::function<int()>& row,
             const std::function<int()>& column) {
  const auto columns = static_cast<size_t>(panels * groups * kInt8Columns);
  Numbers numbers = {
      .panels = panels,
      .groups = groups,
      .planes = planes,
      .rows = std::vector<uint8_t>(static_cast<size_t>(groups * planes * kInt8RowGroupBytes)),
      .row_scales = std::vector<float>(static_cast<size_t>(groups * planes * kInt8Rows), 1.0F),
      .columns = std::vector<int8_t>(columns * kInt8Group),
      .column_scales = std::vector<float>(columns, 1.0F),
      .zeros = std::vector<int32_t>(columns)};
  for (auto& x : numbers.rows) x = static_cast<uint8_t>(row());
  for (auto& x : numbers.columns) x = static_cast<int8_t>(column());
  return numbers;
}

// In two slices of groups, the second added to the first.
std::vector<float> Multiply(const Numbers& numbers, int64_t rows,
                            decltype(Int8GemmTile)* gemm_tile) {
  std::vector<float> out(static_cast<size_t>(numbers.panels * kInt8Rows * kInt8Columns), -1.0F);
  for (int64_t g = 0; g < numbers.groups; g += 2) {
    gemm_tile({.a = {.numbers = numbers.rows.data() + g * numbers.planes * kInt8RowGroupBytes,
                     .scales = numbers.row_scales.data() + g * numbers.planes * kInt8Rows},
               .b = {.numbers = numbers.columns.data() + g * kInt8ColumnGroupBytes,
                     .scales = numbers.column_scales.data() + g * kInt8Columns,
                     .zeros = numbers.zeros.data() + g * kInt8Columns},
               .rows = rows,
               .groups = std::min<int64_t>(2, numbers.groups - g),
               .planes = numbers.planes,
               .panels = numbers.panels,
               .panel_groups = numbers.groups,
               .c = out.data(),
               .c_panel = kInt8Rows * kInt8Columns,
               .add = g > 0});
  }
  return out;
}

// The product of this build, and those of other levels that run here.
std::vector<decltype(Int8GemmTile)*> Tiles() {
  return {
    Int8GemmTile,
#if defined(__AVX2__)
        int8_256::GemmTile<int8_256::AddByWords>,
#endif
#if defined(KIBITZ_HAS_DOT_BYTES)
        int8_256::GemmTile<int8_256::AddByDots>,
#endif
  };
}

TEST(Int8GemmTest, EqualsPlainArithmetic) {
  Rng rng({.seed = 1});
  const auto any_row = [&] { return 1 + static_cast<int>(rng.Below(127)); };
  const auto any_column = [&] { return static_cast<int>(rng.Below(127)) - 63; };
  for (int64_t rows = 1; rows <= kInt8Rows; ++rows) {
    for (int64_t planes : {1, 2}) {
      for (int64_t panels = 1; panels <= kInt8MaxPanels; ++panels) {
        Numbers numbers = Make(panels, 3, planes, any_row, any_column);
        for (auto& zero : numbers.zeros) zero = static_cast<int32_t>(rng.Below(9999)) - 5000;
        const auto expected = Multiply(numbers, rows, Int8GemmTilePlain);
        for (const auto& tile : Tiles()) EXPECT_EQ(Multiply(numbers, rows, tile), expected);
      }
    }
  }
}

TEST(Int8GemmTest, NoSumOverflows) {
  for (int column : {kInt8Max, -kInt8Max}) {
    const Numbers numbers = Make(
        1, 2, 1, [] { return 127; }, [=] { return column; });
    for (const auto& tile : Tiles()) {
      const auto found = Multiply(numbers, kInt8Rows, tile);
      for (float x : found) EXPECT_EQ(x, static_cast<float>(2 * kInt8Group * 127 * column));
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
