// Products by AMX tiles or AVX-512 BF16 beside those of plain C++.
#include "nn/kernels/bf16_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

std::vector<float> RandomBf16Floats(int64_t size, uint64_t seed) {
  Rng rng({.seed = seed, .sample = 0, .purpose = Purpose("bf16")});
  std::vector<float> numbers(static_cast<size_t>(size));
  for (float& x : numbers) x = static_cast<float>(rng.Uniform() * 2 - 1);
  return numbers;
}

TEST(Bf16GemmTest, RoundsToTheNearestEven) {
  EXPECT_EQ(FromBf16(ToBf16(1.0F)), 1.0F);
  EXPECT_EQ(FromBf16(ToBf16(-2.5F)), -2.5F);
  EXPECT_EQ(FromBf16(ToBf16(1 + 1.0F / 256)), 1.0F);            // A tie: to even ...
  EXPECT_EQ(FromBf16(ToBf16(1 + 3.0F / 256)), 1 + 4.0F / 256);  // ... both ways.
  EXPECT_TRUE(std::isinf(FromBf16(ToBf16(INFINITY))));
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(NAN))));
}

using Bf16Pack = void (*)(const FloatMatrix&, Bf16Side, const Bf16Tiles&);
using Bf16Multiply = void (*)(const Bf16Product&);

TEST(Bf16GemmTest, PacksAsThePlainVersionDoes) {
  for (const auto& [rows, columns] :
       std::vector<std::array<int64_t, 2>>{{1, 1}, {16, 32}, {33, 17}, {50, 100}, {96, 64}}) {
    const auto numbers = RandomBf16Floats(rows * columns, 1);
    const FloatMatrix matrix = {numbers.data(), columns, rows, columns};
    for (const Bf16Side side : {Bf16Side::kLeft, Bf16Side::kRight}) {
      for (const bool by_lines : {true, false}) {
        const auto packed = [&](Bf16Pack pack) {
          const Bf16Factor factor(by_lines ? rows : columns, by_lines ? columns : rows);
          pack(matrix, side, factor.all());
          const Bf16* data = factor.all().data;
          return std::vector<Bf16>(data,
                                   data + factor.line_tiles() * factor.depth_tiles() * kBf16Tile);
        };
        EXPECT_EQ(packed(by_lines ? PackByLines : PackByDepth),
                  packed(by_lines ? PackByLinesPlain : PackByDepthPlain));
      }
    }
  }
}

TEST(Bf16GemmTest, Transposes) {
  for (const auto& [rows, columns] :
       std::vector<std::array<int64_t, 2>>{{1, 1}, {16, 16}, {33, 17}, {28, 32}}) {
    const auto numbers = RandomBf16Floats(rows * columns, 1);
    const FloatMatrix matrix = {numbers.data(), columns, rows, columns};
    std::vector<float> found(static_cast<size_t>(columns * (rows + 1)), 7.0F);
    std::vector<float> expected = found;
    TransposeFloats(matrix, found.data(), rows + 1);
    TransposeFloatsPlain(matrix, expected.data(), rows + 1);
    EXPECT_EQ(found, expected);
  }
}

TEST(Bf16GemmTest, MultipliesAsThePlainVersionDoes) {
  for (const auto& [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {16, 32, 16}, {32, 64, 32}, {48, 40, 48}, {33, 70, 17}, {7, 300, 100}}) {
    const auto x = RandomBf16Floats(rows * depth, 1);
    const auto w = RandomBf16Floats(depth * columns, 2);
    const auto before = RandomBf16Floats(rows * (columns + 3), 3);
    const Bf16Factor left(rows, depth);
    const Bf16Factor right(columns, depth);
    PackByLines({x.data(), depth, rows, depth}, Bf16Side::kLeft, left.all());
    PackByDepth({w.data(), columns, depth, columns}, Bf16Side::kRight, right.all());
    for (const bool add : {false, true}) {
      const auto run = [&](Bf16Multiply multiply) {
        std::vector<float> out = before;
        multiply({.left = left.all(),
                  .right = right.all(),
                  .depth_tiles = left.depth_tiles(),
                  .rows = rows,
                  .columns = columns,
                  .out = out.data(),
                  .out_row = columns + 3,
                  .add = add});
        return out;
      };
      const auto found = run(MultiplyBf16);
      const auto expected = run(MultiplyBf16Plain);
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-5 * std::sqrt(static_cast<double>(depth)))
            << rows << " " << depth << " " << columns << " at " << i;
      }
      // Not far from the product of the floats themselves.
      double exact = add ? before[0] : 0;
      for (int64_t k = 0; k < depth; ++k) {
        exact +=
            static_cast<double>(x[static_cast<size_t>(k)]) * w[static_cast<size_t>(k * columns)];
      }
      EXPECT_NEAR(expected[0], exact, 0.01 * std::sqrt(static_cast<double>(depth)));
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
