#include "nn/kernels/cached_gemm.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kGap = 3;  // Floats between the rows of b and of c.

std::vector<float> Draw(int64_t count, Rng& rng) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal());
  return numbers;
}

struct Shape {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  bool transposed = false;  // a: columns are neighbours, not rows.
  bool add = false;
};

// Compares `product` with the plain sum, and the floats between rows with what they were.
void ExpectProduct(const Shape& shape, void (*product)(const Gemm&)) {
  Rng rng({.seed = static_cast<uint64_t>(shape.rows * 1000 + shape.columns)});
  const int64_t row = shape.columns + kGap;
  const std::vector<float> a = Draw(shape.rows * shape.depth, rng);
  const std::vector<float> b = Draw(shape.depth * row, rng);
  const std::vector<float> before = Draw(shape.rows * row, rng);
  std::vector<float> c = before;
  const Strided strided = {.data = a.data(),
                           .row = shape.transposed ? 1 : shape.depth,
                           .column = shape.transposed ? shape.rows : 1};
  product({.a = strided,
           .b = b.data(),
           .b_row = row,
           .c = c.data(),
           .c_row = row,
           .rows = shape.rows,
           .depth = shape.depth,
           .columns = shape.columns,
           .add = shape.add});
  for (int64_t i = 0; i < shape.rows * row; ++i) {
    const auto at = static_cast<size_t>(i);
    double expected = before[at];
    if (i % row < shape.columns) {
      if (!shape.add) expected = 0;
      for (int64_t k = 0; k < shape.depth; ++k) {
        expected += static_cast<double>(strided.data[i / row * strided.row + k * strided.column]) *
                    static_cast<double>(b[static_cast<size_t>(k * row + i % row)]);
      }
    }
    ASSERT_NEAR(c[at], expected, 1e-4)
        << shape.rows << " x " << shape.depth << " x " << shape.columns << ", number " << i
        << (shape.transposed ? ", a transposed" : "") << (shape.add ? ", added" : "");
  }
}

TEST(CachedGemmTest, EqualsThePlainSum) {
  for (const int64_t rows : {1, 3, 4, 6, 8, 17, 21}) {
    for (const int64_t columns : {1, 5, 16, 23, 32, 48, 57, 64}) {
      for (const int64_t depth : {1, 33}) {
        for (const bool transposed : {false, true}) {
          for (const bool add : {false, true}) {
            ExpectProduct({rows, depth, columns, transposed, add}, CachedGemm);
          }
        }
      }
    }
  }
}

TEST(GemmTileTest, EqualsThePlainSum) {
  for (int64_t rows = 1; rows <= kTileRows; ++rows) {
    for (const bool transposed : {false, true}) {
      for (const bool add : {false, true}) {
        ExpectProduct({rows, 40, kTileColumns, transposed, add}, GemmTile);
      }
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
