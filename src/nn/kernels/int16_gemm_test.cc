#include "nn/kernels/int16_gemm.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

// Both products of the same random numbers of the largest size; with `extreme` all of that size.
void ExpectEqual(int64_t rows, int64_t depth, bool extreme) {
  Rng rng({.seed = static_cast<uint64_t>(depth)});
  const int32_t max = Int16Max(depth);
  const auto draw = [&] {
    const auto number = static_cast<int32_t>(rng.Below(static_cast<uint64_t>(2 * max + 1))) - max;
    return static_cast<int16_t>(extreme ? max : number);
  };
  const int64_t a_row = depth + 6;
  std::vector<int16_t> a(static_cast<size_t>(rows * a_row));
  std::vector<int16_t> b(static_cast<size_t>(depth * kTileColumns));
  for (int16_t& number : a) number = draw();
  for (int16_t& number : b) number = draw();
  std::vector<int32_t> fast(static_cast<size_t>(rows * kTileColumns));
  std::vector<int32_t> plain = fast;
  Int16Gemm gemm = {.a = a.data(),
                    .a_row = a_row,
                    .b = b.data(),
                    .rows = rows,
                    .depth = depth,
                    .next = b.data(),
                    .fetch = depth / 4,
                    .c = fast.data(),
                    .c_row = kTileColumns};
  Int16GemmTile(gemm);
  gemm.c = plain.data();
  Int16GemmTilePlain(gemm);
  EXPECT_EQ(fast, plain) << rows << " rows, depth " << depth;
  if (extreme) {
    EXPECT_EQ(int64_t{plain[0]}, int64_t{max} * max * depth);  // No overflow.
  }
}

TEST(Int16GemmTest, EqualsThePlainOne) {
  for (const int64_t rows : {4, 6}) {
    for (const int64_t depth : {2, 8, 64, 130, 512}) {
      ExpectEqual(rows, depth, false);
      ExpectEqual(rows, depth, true);
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
