#include "nn/kernels/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

std::vector<float> RandomNumbers(int64_t count, uint64_t seed) {
  Rng rng({.seed = seed});
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal());
  return numbers;
}

struct Case {
  int64_t rows;
  int64_t outputs;
  int64_t inputs;
};
const Case kCases[] = {{1, 1, 1},      {2, 16, 128},  {7, 33, 130},   {6, 100, 64},
                       {150, 70, 300}, {13, 41, 515}, {300, 129, 640}};

// y = W x + b, in double precision.
std::vector<float> Plain(const Case& size, const std::vector<float>& x, const std::vector<float>& w,
                         const std::vector<float>& bias) {
  std::vector<float> y(static_cast<size_t>(size.rows * size.outputs));
  for (int64_t row = 0; row < size.rows; ++row) {
    for (int64_t n = 0; n < size.outputs; ++n) {
      double sum = bias.empty() ? 0 : bias[static_cast<size_t>(n)];
      for (int64_t k = 0; k < size.inputs; ++k) {
        sum += static_cast<double>(x[static_cast<size_t>(row * size.inputs + k)]) *
               w[static_cast<size_t>(n * size.inputs + k)];
      }
      y[static_cast<size_t>(row * size.outputs + n)] = static_cast<float>(sum);
    }
  }
  return y;
}

std::vector<float> Fast(Team& team, const Linear& linear, const std::vector<float>& x, int64_t rows,
                        std::vector<float> y, Finish finish = Finish::kStore) {
  PackedRows packed;
  packed.Pack(team, rows, linear, [&](int64_t row, float* out) {
    std::copy_n(x.begin() + row * linear.inputs(), linear.inputs(), out);
  });
  const int64_t columns = static_cast<int64_t>(y.size()) / rows;
  linear.Run(team, packed, {.to = y.data(), .row = columns, .finish = finish});
  return y;
}

// Root of the mean squared difference, as a part of the expected numbers' own size.
double ErrorOf(const std::vector<float>& found, const std::vector<float>& expected) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(found[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  return std::sqrt(error / size);
}

TEST(LinearTest, FloatsAreThePlainProduct) {
  Team team(3);
  for (const Case& size : kCases) {
    const auto w = RandomNumbers(size.outputs * size.inputs, 1);
    const auto x = RandomNumbers(size.rows * size.inputs, 2);
    const auto bias = RandomNumbers(size.outputs, 3);
    const Linear linear({.weight = w, .outputs = size.outputs, .inputs = size.inputs, .bias = bias},
                        Precision::kF32);
    const std::vector<float> empty(static_cast<size_t>(size.rows * size.outputs));
    const auto expected = Plain(size, x, w, bias);
    const auto found = Fast(team, linear, x, size.rows, empty);
    EXPECT_LT(ErrorOf(found, expected), 1e-6) << size.rows << " " << size.inputs;
    // Added to what is there.
    const auto start = RandomNumbers(size.rows * size.outputs, 4);
    const auto sum = Fast(team, linear, x, size.rows, start, Finish::kAdd);
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_FLOAT_EQ(sum[i], start[i] + found[i]);
  }
}

TEST(LinearTest, Int8IsNear) {
  Team team(2);
  for (const Case& size : kCases) {
    const auto w = RandomNumbers(size.outputs * size.inputs, 5);
    const auto x = RandomNumbers(size.rows * size.inputs, 6);
    const Linear linear({.weight = w, .outputs = size.outputs, .inputs = size.inputs},
                        Precision::kInt8);
    const std::vector<float> empty(static_cast<size_t>(size.rows * size.outputs));
    const auto found = Fast(team, linear, x, size.rows, empty);
    // 7-bit weights lose about 1.2% on normal numbers, 7-bit activations as much again.
    const double bound = size.inputs < 512 ? 0.016 : 0.022;
    EXPECT_LT(ErrorOf(found, Plain(size, x, w, {})), bound) << size.rows << " " << size.inputs;
  }
}

TEST(LinearTest, ARowIsTheSameAloneAndAmongOthersOnAnyThreads) {
  const Case size = {150, 70, 640};
  const auto w = RandomNumbers(size.outputs * size.inputs, 7);
  const auto x = RandomNumbers(size.rows * size.inputs, 8);
  for (Precision precision : {Precision::kF32, Precision::kInt8}) {
    const Linear linear({.weight = w, .outputs = size.outputs, .inputs = size.inputs}, precision);
    Team one(1);
    Team four(4);
    const std::vector<float> empty(static_cast<size_t>(size.rows * size.outputs));
    const auto many = Fast(four, linear, x, size.rows, empty);
    EXPECT_EQ(many, Fast(one, linear, x, size.rows, empty));
    for (int64_t row : {0, 5, 144, 149}) {
      const std::vector<float> own(x.begin() + row * size.inputs,
                                   x.begin() + (row + 1) * size.inputs);
      const auto alone =
          Fast(one, linear, own, 1, std::vector<float>(static_cast<size_t>(size.outputs)));
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), many.begin() + row * size.outputs));
    }
  }
}

TEST(LinearTest, SwiGlu) {
  Team team(2);
  const Case size = {9, 50, 70};
  const auto gate = RandomNumbers(size.outputs * size.inputs, 9);
  const auto up = RandomNumbers(size.outputs * size.inputs, 10);
  const auto x = RandomNumbers(size.rows * size.inputs, 11);
  const auto plain_gate = Plain(size, x, gate, {});
  const auto plain_up = Plain(size, x, up, {});
  for (Precision precision : {Precision::kF32, Precision::kInt8}) {
    const auto both = InterleaveSwiGlu(gate, up, size.outputs, size.inputs, precision);
    const int64_t outputs = SwiGluOutputs(size.outputs, precision);
    const Linear linear({.weight = {both.data(), static_cast<size_t>(both.size())},
                         .outputs = outputs,
                         .inputs = size.inputs},
                        precision);
    const auto found =
        Fast(team, linear, x, size.rows,
             std::vector<float>(static_cast<size_t>(size.rows * outputs / 2)), Finish::kSwiGlu);
    for (int64_t row = 0; row < size.rows; ++row) {
      for (int64_t n = 0; n < size.outputs; ++n) {
        const auto i = static_cast<size_t>(row * size.outputs + n);
        const double expected = plain_gate[i] / (1 + std::exp(-plain_gate[i])) * plain_up[i];
        EXPECT_NEAR(found[static_cast<size_t>(row * outputs / 2 + n)], expected,
                    precision == Precision::kF32 ? 1e-3 : 8);
      }
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
