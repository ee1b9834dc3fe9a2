#include "nn/kernels/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kibitz::nn {
namespace {

TEST(Gelu, CloseToTheExactFunction) {
  std::vector<float> x;
  for (int i = -20'000; i <= 20'000; ++i) x.push_back(static_cast<float>(i) * 0.001F);
  std::vector<float> y(x.size());
  ApplyGelu(x.data(), static_cast<int64_t>(x.size()), y.data(), false);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = 0.5 * x[i] * (1 + std::erf(x[i] / std::sqrt(2.0)));
    ASSERT_NEAR(y[i], exact, 3e-7 * (std::fabs(x[i]) + 1)) << x[i];
  }
}

TEST(Gelu, SlopeIsCloseToo) {
  for (int i = -20'000; i <= 20'000; ++i) {
    const float x = static_cast<float>(i) * 0.001F;
    const double bell = std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
    const double exact = 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * bell;
    ASSERT_NEAR(GeluAndSlope(Spread(x)).slope[0], exact, 3e-7) << x;
  }
}

// Any length, stored or added.
TEST(Gelu, EveryLength) {
  std::vector<float> x(40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.2F - 4;
  std::vector<float> whole(x.size());
  ApplyGelu(x.data(), 40, whole.data(), false);
  for (int64_t count = 0; count <= 40; ++count) {
    std::vector<float> y(41, 1.0F);
    ApplyGelu(x.data(), count, y.data(), true);
    for (int64_t i = 0; i < 41; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_FLOAT_EQ(y[at], i < count ? 1 + whole[at] : 1.0F);
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
