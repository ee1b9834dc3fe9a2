#include "nn/conv/residual_net.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/residual_random.h"

namespace kibitz::nn {
namespace {

// --- The plain way: direct sums in double precision, channel by channel ---

using Numbers = std::vector<double>;  // (channels, 64), or a vector.

double& At(Numbers& numbers, int64_t i) { return numbers[static_cast<size_t>(i)]; }
double At(const Numbers& numbers, int64_t i) { return numbers[static_cast<size_t>(i)]; }
double Exact(const std::vector<float>& numbers, int64_t i) {
  return static_cast<double>(numbers[static_cast<size_t>(i)]);
}

double PlainActivation(Activation activation, double x) {
  if (activation == Activation::kRelu) return std::max(x, 0.0);
  return x * std::tanh(std::log1p(std::exp(x)));
}
void Activate(Activation activation, Numbers& x) {
  for (double& number : x) number = PlainActivation(activation, number);
}

Numbers PlainConv(const ConvWeights& conv, const Numbers& x) {
  const int64_t reach = conv.size / 2;
  Numbers y(static_cast<size_t>(conv.outputs * kSquares));
  for (int64_t n = 0; n < conv.outputs; ++n) {
    for (int64_t square = 0; square < kSquares; ++square) {
      double sum = Exact(conv.bias, n);
      for (int64_t i = 0; i < conv.size * conv.size; ++i) {
        const int64_t rank = square / 8 + i / conv.size - reach;
        const int64_t file = square % 8 + i % conv.size - reach;
        if (rank < 0 || rank > 7 || file < 0 || file > 7) continue;
        for (int64_t k = 0; k < conv.inputs; ++k) {
          sum += Exact(conv.weight, (n * conv.inputs + k) * conv.size * conv.size + i) *
                 At(x, k * kSquares + rank * 8 + file);
        }
      }
      At(y, n * kSquares + square) = sum;
    }
  }
  return y;
}

Numbers PlainDense(const DenseWeights& dense, const Numbers& x) {
  Numbers y(static_cast<size_t>(dense.outputs));
  for (int64_t n = 0; n < dense.outputs; ++n) {
    double sum = Exact(dense.bias, n);
    for (int64_t k = 0; k < dense.inputs; ++k) {
      sum += Exact(dense.weight, n * dense.inputs + k) * At(x, k);
    }
    At(y, n) = sum;
  }
  return y;
}

void PlainSqueeze(const SqueezeWeights& squeeze, Activation activation, Numbers& x) {
  const int64_t channels = squeeze.reduce.inputs;
  Numbers means(static_cast<size_t>(channels));
  for (int64_t i = 0; i < channels * kSquares; ++i) At(means, i / kSquares) += At(x, i) / kSquares;
  Numbers small = PlainDense(squeeze.reduce, means);
  Activate(activation, small);
  const Numbers factors = PlainDense(squeeze.expand, small);
  for (int64_t i = 0; i < channels * kSquares; ++i) {
    const double first = At(factors, i / kSquares);
    At(x, i) = At(x, i) / (1 + std::exp(-first)) + At(factors, channels + i / kSquares);
  }
}

struct Answer {
  std::vector<float> policy;
  std::vector<float> value;
};

Answer PlainRun(const ResidualWeights& weights, const PlaneInput& input) {
  Numbers x(static_cast<size_t>(weights.input.inputs * kSquares));
  for (int64_t i = 0; i < weights.input.inputs * kSquares; ++i) {
    const auto plane = static_cast<size_t>(i / kSquares);
    if ((input.squares[plane] >> (i % kSquares) & 1) != 0) {
      At(x, i) = static_cast<double>(input.values[plane]);
    }
  }
  x = PlainConv(weights.input, x);
  Activate(weights.activation, x);
  for (const ResidualBlockWeights& block : weights.blocks) {
    Numbers y = PlainConv(block.first, x);
    Activate(weights.activation, y);
    y = PlainConv(block.second, y);
    if (block.squeeze) PlainSqueeze(*block.squeeze, weights.activation, y);
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    Activate(weights.activation, x);
  }
  Numbers policy = PlainConv(weights.policy, x);
  Activate(weights.activation, policy);
  Answer answer;
  if (weights.policy_dense) {
    policy = PlainDense(*weights.policy_dense, policy);
    answer.policy.assign(policy.begin(), policy.end());
  } else {
    policy = PlainConv(*weights.policy_planes, policy);
    const int64_t planes = weights.policy_planes->outputs;
    for (int64_t i = 0; i < planes * kSquares; ++i) {
      answer.policy.push_back(static_cast<float>(At(policy, i % planes * kSquares + i / planes)));
    }
  }
  Numbers value = PlainConv(weights.value, x);
  Activate(weights.activation, value);
  value = PlainDense(weights.value_hidden, value);
  Activate(weights.activation, value);
  value = PlainDense(weights.value_out, value);
  answer.value.assign(value.begin(), value.end());
  return answer;
}

// --- Comparison ---

Answer FastRun(ResidualNet& net, Team& team, const std::vector<RandomPlanes>& positions) {
  std::vector<PlaneInput> inputs;
  for (const RandomPlanes& position : positions) inputs.push_back(position.input());
  Answer answer;
  answer.policy.resize(positions.size() * static_cast<size_t>(net.policy_size()));
  answer.value.resize(positions.size() * static_cast<size_t>(net.value_size()));
  net.Run(team, inputs, answer.policy.data(), answer.value.data());
  return answer;
}

// The largest difference as a part of the expected numbers' root mean square.
double ErrorOf(std::span<const float> found, std::span<const float> expected) {
  EXPECT_EQ(found.size(), expected.size());
  double max = 0;
  double squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    max = std::max(max, std::fabs(static_cast<double>(found[i]) - expected[i]));
    squares += static_cast<double>(expected[i]) * expected[i];
  }
  return max / std::sqrt(squares / static_cast<double>(expected.size()));
}

std::vector<RandomPlanes> DrawPositions(int64_t planes, int count) {
  std::vector<RandomPlanes> positions;
  for (int i = 0; i < count; ++i) positions.emplace_back(planes, static_cast<uint64_t>(i));
  return positions;
}

void ExpectLikePlain(const ResidualShape& shape, int count) {
  const ResidualWeights weights = RandomResidualWeights(shape, 1);
  ResidualNet net(weights);
  Team team(2);
  const std::vector<RandomPlanes> positions = DrawPositions(shape.planes, count);
  const Answer found = FastRun(net, team, positions);
  Answer plain;
  for (const RandomPlanes& position : positions) {
    const Answer one = PlainRun(weights, position.input());
    plain.policy.insert(plain.policy.end(), one.policy.begin(), one.policy.end());
    plain.value.insert(plain.value.end(), one.value.begin(), one.value.end());
  }
  const double bound = 2e-5;
  EXPECT_LT(ErrorOf(found.policy, plain.policy), bound);
  EXPECT_LT(ErrorOf(found.value, plain.value), bound);
}

TEST(ResidualNet, HasThePlainNumbersInTheMaiaShape) { ExpectLikePlain({}, 2); }

const ResidualShape kOddShape = {.planes = 5,
                                 .channels = 19,
                                 .blocks = 2,
                                 .squeezed = 3,
                                 .policy_channels = 7,
                                 .policy_outputs = 11,
                                 .value_channels = 5,
                                 .value_hidden = 13,
                                 .value_outputs = 1};

TEST(ResidualNet, HasThePlainNumbersInOddSizes) { ExpectLikePlain(kOddShape, 9); }

TEST(ResidualNet, HasThePlainNumbersWithMish) {
  ExpectLikePlain({.channels = 24, .blocks = 3, .activation = Activation::kMish}, 3);
}

TEST(ResidualNet, HasThePlainNumbersWithAClassicalHeadAndNoSqueeze) {
  ExpectLikePlain({.channels = 40,
                   .blocks = 3,
                   .squeezed = 0,
                   .policy_channels = 10,
                   .policy_outputs = 1858,
                   .convolutional_policy = false,
                   .value_outputs = 1},
                  7);
}

TEST(ResidualNet, AnswersTheSameInAnyCompanyAndOnAnyNumberOfThreads) {
  const ResidualShape shape = {.channels = 48, .blocks = 2};
  ResidualNet net(RandomResidualWeights(shape, 2));
  Team one(1);
  Team three(3);
  const std::vector<RandomPlanes> positions = DrawPositions(shape.planes, 41);
  const Answer together = FastRun(net, three, positions);
  EXPECT_EQ(FastRun(net, one, positions).policy, together.policy);
  const auto size = static_cast<size_t>(net.policy_size());
  for (size_t i = 0; i < positions.size(); i += 5) {
    const Answer alone = FastRun(net, three, {positions[i]});
    const auto first = together.policy.begin() + static_cast<int64_t>(i * size);
    EXPECT_TRUE(std::equal(alone.policy.begin(), alone.policy.end(), first)) << i;
    const auto value = together.value.begin() + static_cast<int64_t>(i) * net.value_size();
    EXPECT_TRUE(std::equal(alone.value.begin(), alone.value.end(), value)) << i;
  }
  EXPECT_TRUE(FastRun(net, three, {}).policy.empty());
}

TEST(ResidualNet, RefusesSizesThatDoNotFit) {
  const ResidualShape shape = {.planes = 4, .channels = 8, .blocks = 2};
  const auto reason = [&](const std::function<void(ResidualWeights&)>& spoil) {
    ResidualWeights weights = RandomResidualWeights(shape, 3);
    spoil(weights);
    try {
      const ResidualNet net(weights);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_NE(reason([](auto& w) {
              w.blocks[1].second.weight.pop_back();
            }).find("block 2, second convolution"),
            std::string::npos);
  EXPECT_NE(reason([](auto& w) {
              w.blocks[0].squeeze->expand = w.blocks[0].squeeze->reduce;
            }).find("block 1, excitation"),
            std::string::npos);
  EXPECT_NE(reason([](auto& w) { w.policy_planes.reset(); }).find("none are there"),
            std::string::npos);
  EXPECT_NE(reason([](auto& w) { w.value_hidden.inputs = 7; }).find("value, hidden layer"),
            std::string::npos);
  EXPECT_NE(reason([](auto& w) { w.input = w.value; }).find("the window must be 3x3"),
            std::string::npos);
}

// --- The layers alone ---

TEST(Conv, HasThePlainNumbers) {
  Rng rng({.seed = 5});
  for (const int64_t size : {1, 3}) {
    for (const int64_t channels : {1, 13, 64, 130}) {
      ConvWeights weights = {
          .inputs = channels, .outputs = channels + 3, .size = size, .weight = {}, .bias = {}};
      weights.weight.resize(static_cast<size_t>(channels * weights.outputs * size * size));
      weights.bias.resize(static_cast<size_t>(weights.outputs));
      for (float& x : weights.weight) x = static_cast<float>(rng.Normal());
      for (float& x : weights.bias) x = static_cast<float>(rng.Normal());
      constexpr int64_t kPositions = 3;
      const int64_t row = PaddedChannels(channels);
      AlignedArray<float> x(kPositions * kSquares * row);
      std::vector<Numbers> plain(kPositions, Numbers(static_cast<size_t>(channels * kSquares)));
      for (int64_t i = 0; i < x.size(); ++i) {
        if (i % row >= channels) continue;
        x[i] = static_cast<float>(rng.Normal());
        At(plain[static_cast<size_t>(i / row / kSquares)],
           i % row * kSquares + i / row % kSquares) = static_cast<double>(x[i]);
      }
      const int64_t out_row = PaddedChannels(weights.outputs);
      AlignedArray<float> y(kPositions * kSquares * out_row);
      ConvRoom room;
      FloatPool pool;
      Conv(weights, pool).Run(kPositions, x.data(), y.data(), {}, room);
      std::vector<float> found;
      std::vector<float> expected;
      for (int64_t p = 0; p < kPositions; ++p) {
        const Numbers result = PlainConv(weights, plain[static_cast<size_t>(p)]);
        for (int64_t i = 0; i < weights.outputs * kSquares; ++i) {
          expected.push_back(static_cast<float>(At(result, i)));
          found.push_back(y[(p * kSquares + i % kSquares) * out_row + i / kSquares]);
        }
      }
      EXPECT_LT(ErrorOf(found, expected), 1e-5) << size << " " << channels;
    }
  }
}

TEST(PlaneConv, TakesPlanesOfAnySquares) {
  Rng rng({.seed = 6});
  ResidualWeights drawn = RandomResidualWeights({.planes = 30, .channels = 70, .blocks = 0}, 4);
  FloatPool pool;
  const PlaneConv conv(drawn.input, pool);
  std::vector<uint64_t> squares;
  std::vector<float> values;
  Numbers x(30 * kSquares);
  for (int64_t k = 0; k < 30; ++k) {
    // From empty to full, by way of half full.
    uint64_t set = k % 3 == 0 ? ~uint64_t{0} : rng.Next();
    if (k % 3 == 2) set |= rng.Next();
    if (k == 29) set = 0;
    squares.push_back(set);
    values.push_back(k % 7 == 6 ? 0.0F : static_cast<float>(rng.Normal()));
    for (int64_t square = 0; square < kSquares; ++square) {
      if ((set >> square & 1) != 0) {
        At(x, k * kSquares + square) = static_cast<double>(values.back());
      }
    }
  }
  const Numbers plain = PlainConv(drawn.input, x);
  const int64_t row = PaddedChannels(70);
  AlignedArray<float> y(kSquares * row);
  PlaneConv::Room room;
  conv.Run({squares, values}, y.data(), std::nullopt, room);
  std::vector<float> found;
  std::vector<float> expected;
  for (int64_t i = 0; i < 70 * kSquares; ++i) {
    expected.push_back(static_cast<float>(At(plain, i)));
    found.push_back(y[i % kSquares * row + i / kSquares]);
  }
  EXPECT_LT(ErrorOf(found, expected), 5e-6);
}

}  // namespace
}  // namespace kibitz::nn
