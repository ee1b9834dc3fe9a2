#include "io/bytes/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kibitz::io {
namespace {

TEST(Tensor, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
    } else {
      EXPECT_EQ(FloatToHalf(value), half) << value;
    }
  }
}

TEST(Tensor, HalvesAreTheNearestAndTiesGoToEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const float middle = (HalfToFloat(low) + HalfToFloat(high)) / 2;
    EXPECT_EQ(FloatToHalf(middle), low % 2 == 0 ? low : high);
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(FloatToHalf(-std::nextafter(middle, 1e9F)), high | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(65519), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520), 0x7C00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xFC00);
}

TEST(Tensor, ToHalfKeepsTheShape) {
  const std::vector<float> values = {1, -2.5, 1.0F / 3, 1e-6F, 0, 100000};
  const auto bytes = std::as_bytes(std::span(values));
  const Tensor half = ToHalf(OwnedTensor(DType::kF32, {2, 3}, {bytes.begin(), bytes.end()}));
  EXPECT_EQ(half.type, DType::kF16);
  EXPECT_EQ(half.shape, (std::vector<int64_t>{2, 3}));
  const std::vector<float> back = ToFloats(half);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(back[i], values[i], 5e-4 * std::abs(values[i]) + 3e-8);
  EXPECT_TRUE(std::isinf(back[5]));
}

}  // namespace
}  // namespace kibitz::io
