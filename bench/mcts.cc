// A residual network as a search runs it: evaluations a second at several batch sizes, beside the
// same network with direct convolution by packed products.
//
// The network has the shape of the Maia networks (112 planes, 6 blocks of 64 channels with squeeze
// and excitation, policy of 80 planes, three values) and random weights: speed does not depend on
// them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "bench/peak.h"
#include "nn/linear.h"
#include "nn/residual_net.h"
#include "nn/residual_random.h"

namespace kibitz::bench {
namespace {

using nn::ConvWeights;
using nn::DenseWeights;
using nn::kSquares;
using nn::Linear;
using nn::PlaneInput;
using nn::Precision;
using nn::ResidualWeights;

constexpr uint64_t kSeed = 7;
constexpr int kPositions = 256;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double SecondsOf(const std::function<void()>& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}

struct Outputs {
  std::vector<float> policy;
  std::vector<float> value;
};

// --- The yardstick ---

// The same network with direct convolution: for every square the 3x3 window's inputs side by side,
// times packed weights. Activations are (positions, 64, channels).
class DirectNet {
 public:
  explicit DirectNet(const ResidualWeights& weights) : weights_(weights) {
    Pack(weights.input);
    for (const auto& block : weights.blocks) {
      Pack(block.first);
      Pack(block.second);
    }
    Pack(weights.policy);
    Pack(*weights.policy_planes);
    Pack(weights.value);
    Pack({weights.value_hidden.inputs, weights.value_hidden.outputs, 1, weights.value_hidden.weight,
          weights.value_hidden.bias});
  }

  // Multiplications and additions for a position.
  double Flops() const { return flops_; }

  Outputs Run(nn::Team& team, std::span<const PlaneInput> positions) {
    const auto count = static_cast<int64_t>(positions.size());
    size_t layer = 0;
    const auto convolve = [&](const ConvWeights& conv, const std::vector<float>& x) {
      return Convolve(team, linears_[layer++], conv, count, x);
    };
    std::vector<float> x = convolve(weights_.input, Expand(positions));
    Relu(x);
    for (const auto& block : weights_.blocks) {
      std::vector<float> y = convolve(block.first, x);
      Relu(y);
      y = convolve(block.second, y);
      if (block.squeeze) Squeeze(*block.squeeze, count, y);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::max(x[i] + y[i], 0.0F);
    }
    std::vector<float> policy = convolve(weights_.policy, x);
    Relu(policy);
    policy = convolve(*weights_.policy_planes, policy);
    std::vector<float> value = convolve(weights_.value, x);
    Relu(value);
    return {std::move(policy), Value(team, linears_[layer], count, value)};
  }

 private:
  void Pack(const ConvWeights& conv) {
    const int64_t window = conv.size * conv.size;
    std::vector<float> weight(conv.weight.size());  // (outputs, window, inputs)
    for (int64_t i = 0; i < static_cast<int64_t>(weight.size()); ++i) {
      const int64_t n = i / (window * conv.inputs);
      const int64_t place = i / conv.inputs % window;
      weight[static_cast<size_t>(i)] =
          conv.weight[static_cast<size_t>((n * conv.inputs + i % conv.inputs) * window + place)];
    }
    linears_.emplace_back(nn::LinearWeights{.weight = weight,
                                            .outputs = conv.outputs,
                                            .inputs = window * conv.inputs,
                                            .bias = conv.bias},
                          Precision::kF32);
    const bool dense = conv.inputs == weights_.value_hidden.inputs;
    flops_ += 2.0 * static_cast<double>(weight.size()) * (dense ? 1 : kSquares);
  }

  static void Relu(std::vector<float>& x) {
    for (float& number : x) number = std::max(number, 0.0F);
  }

  static std::vector<float> Expand(std::span<const PlaneInput> positions) {
    const size_t planes = positions[0].squares.size();
    std::vector<float> x(positions.size() * kSquares * planes);
    for (size_t i = 0; i < x.size(); ++i) {
      const PlaneInput& position = positions[i / planes / kSquares];
      if ((position.squares[i % planes] >> (i / planes % kSquares) & 1) != 0) {
        x[i] = position.values[i % planes];
      }
    }
    return x;
  }

  std::vector<float> Convolve(nn::Team& team, const Linear& linear, const ConvWeights& conv,
                              int64_t count, const std::vector<float>& x) {
    const int64_t reach = conv.size / 2;
    packed_.Pack(team, count * kSquares, linear, [&](int64_t row, float* out) {
      const int64_t square = row % kSquares;
      for (int64_t i = 0; i < conv.size * conv.size; ++i, out += conv.inputs) {
        const int64_t rank = square / 8 + i / conv.size - reach;
        const int64_t file = square % 8 + i % conv.size - reach;
        if (rank < 0 || rank > 7 || file < 0 || file > 7) {
          std::fill_n(out, conv.inputs, 0.0F);
        } else {
          const int64_t from = (row - square + rank * 8 + file) * conv.inputs;
          std::copy_n(x.data() + from, conv.inputs, out);
        }
      }
    });
    std::vector<float> y(static_cast<size_t>(count * kSquares * conv.outputs));
    linear.Run(team, packed_, {.to = y.data(), .row = conv.outputs});
    return y;
  }

  static std::vector<float> Dense(const DenseWeights& dense, const std::vector<float>& x) {
    std::vector<float> y = dense.bias;
    for (size_t i = 0; i < dense.weight.size(); ++i)
      y[i / x.size()] += dense.weight[i] * x[i % x.size()];
    return y;
  }

  static void Squeeze(const nn::SqueezeWeights& squeeze, int64_t count, std::vector<float>& y) {
    const auto channels = static_cast<size_t>(squeeze.reduce.inputs);
    for (size_t p = 0; p < static_cast<size_t>(count); ++p) {
      float* board = y.data() + p * kSquares * channels;
      std::vector<float> means(channels);
      for (size_t i = 0; i < kSquares * channels; ++i) means[i % channels] += board[i] / kSquares;
      std::vector<float> small = Dense(squeeze.reduce, means);
      Relu(small);
      std::vector<float> factors = Dense(squeeze.expand, small);
      for (size_t c = 0; c < channels; ++c) factors[c] = 1 / (1 + std::exp(-factors[c]));
      for (size_t i = 0; i < kSquares * channels; ++i) {
        board[i] = board[i] * factors[i % channels] + factors[channels + i % channels];
      }
    }
  }

  std::vector<float> Value(nn::Team& team, const Linear& linear, int64_t count,
                           const std::vector<float>& boards) {
    const int64_t channels = weights_.value.outputs;
    packed_.Pack(team, count, linear, [&](int64_t p, float* out) {
      for (int64_t i = 0; i < kSquares * channels; ++i) {
        out[i % channels * kSquares + i / channels] =
            boards[static_cast<size_t>(p * kSquares * channels + i)];
      }
    });
    std::vector<float> hidden(static_cast<size_t>(count * linear.outputs()));
    linear.Run(team, packed_, {.to = hidden.data(), .row = linear.outputs()});
    Relu(hidden);
    std::vector<float> value;
    for (int64_t p = 0; p < count; ++p) {
      const auto first = hidden.begin() + p * linear.outputs();
      for (float x : Dense(weights_.value_out, {first, first + linear.outputs()})) {
        value.push_back(x);
      }
    }
    return value;
  }

  const ResidualWeights& weights_;
  std::vector<Linear> linears_;  // In the order of use.
  nn::PackedRows packed_;
  double flops_ = 0;
};

// --- Measurements ---

Outputs Evaluate(nn::ResidualNet& net, nn::Team& team, std::span<const PlaneInput> positions) {
  Outputs outputs;
  outputs.policy.resize(positions.size() * static_cast<size_t>(net.policy_size()));
  outputs.value.resize(positions.size() * static_cast<size_t>(net.value_size()));
  net.Run(team, positions, outputs.policy.data(), outputs.value.data());
  return outputs;
}

// Of outputs in steps of 0.01: the same on machines that round otherwise, but for numbers at a
// step's edge.
uint64_t SignatureOf(const Outputs& outputs) {
  Signature signature;
  for (const auto* numbers : {&outputs.policy, &outputs.value}) {
    for (const float x : *numbers) {
      signature.Add(static_cast<uint64_t>(std::lround(static_cast<double>(x) * 100)));
    }
  }
  return signature.value();
}

double LargestDifference(const Outputs& a, const Outputs& b) {
  double most = 0;
  for (size_t i = 0; i < a.policy.size(); ++i) {
    most = std::max(most, std::fabs(static_cast<double>(a.policy[i]) - b.policy[i]));
  }
  for (size_t i = 0; i < a.value.size(); ++i) {
    most = std::max(most, std::fabs(static_cast<double>(a.value[i]) - b.value[i]));
  }
  return most;
}

struct Measured {
  double fast = 0;  // Evaluations a second.
  double direct = 0;
  double peak = 0;  // Multiplications and additions a second.
};

// In turns: what disturbs one disturbs the others.
Measured MeasureBatch(const Bench& bench, nn::ResidualNet& net, DirectNet& direct, nn::Team& team,
                      std::span<const PlaneInput> positions, size_t batch) {
  std::vector<double> fast;
  std::vector<double> plain;
  std::vector<double> peaks;
  std::vector<float> policy(batch * static_cast<size_t>(net.policy_size()));
  std::vector<float> value(batch * static_cast<size_t>(net.value_size()));
  for (int round = 0; round < (bench.quick() ? 5 : 25); ++round) {
    peaks.push_back(MeasurePeak(1));
    // All positions in batches, so that a round takes as long for each size.
    fast.push_back(SecondsOf([&] {
      for (size_t i = 0; i + batch <= positions.size(); i += batch) {
        net.Run(team, positions.subspan(i, batch), policy.data(), value.data());
      }
    }));
    const size_t some = std::max<size_t>(batch, 64);
    plain.push_back(SecondsOf([&] {
                      for (size_t i = 0; i + batch <= some; i += batch) {
                        direct.Run(team, positions.subspan(i, batch));
                      }
                    }) *
                    static_cast<double>(positions.size()) / static_cast<double>(some));
  }
  const auto count = static_cast<double>(positions.size());
  return {count / Median(fast), count / Median(plain), Median(peaks)};
}

void MeasureNet(Bench& bench, nn::Team& team) {
  const ResidualWeights weights = nn::RandomResidualWeights({}, kSeed);
  nn::ResidualNet net(weights, Precision::kF32);
  DirectNet direct(weights);
  std::vector<nn::RandomPlanes> boards;
  for (int i = 0; i < kPositions; ++i) boards.emplace_back(net.planes(), static_cast<uint64_t>(i));
  std::vector<PlaneInput> positions;
  for (const auto& board : boards) positions.push_back(board.input());
  const Outputs outputs = Evaluate(net, team, positions);
  const double difference = LargestDifference(outputs, direct.Run(team, positions));
  bench.Say(
      fmt::format("{} threads; {} MB of weights; a position is {:.1f} MFLOP by direct "
                  "convolution, {:.1f} in our products; outputs differ by {:.1e} at most",
                  team.size(), net.memory_bytes() >> 20, direct.Flops() / 1e6,
                  net.ProductFlops() / 1e6, difference));
  if (difference > 1e-3) bench.Fail("the outputs are not those of direct convolution");
  for (const size_t batch : {1, 16, 64, 256}) {
    const Measured measured = MeasureBatch(bench, net, direct, team, positions, batch);
    bench.Report({.name = fmt::format("evaluations, batch {}, f32", batch),
                  .value = measured.fast,
                  .unit = "positions/s",
                  .yardstick = measured.direct,
                  .yardstick_name = "direct convolution",
                  .signature = SignatureOf(outputs),
                  .promised_ratio = batch >= 16 ? std::optional(1.5) : std::nullopt});
    bench.Report({.name = fmt::format("products, batch {}, f32", batch),
                  .value = measured.fast * net.ProductFlops() / 1e9,
                  .unit = "GFLOP/s",
                  .yardstick = measured.peak / 1e9,
                  .yardstick_name = "f32 peak",
                  .signature = SignatureOf(outputs)});
    bench.Report({.name = fmt::format("as direct, batch {}, f32", batch),
                  .value = measured.fast * direct.Flops() / 1e9,
                  .unit = "GFLOP/s",
                  .yardstick = measured.peak / 1e9,
                  .yardstick_name = "f32 peak",
                  .signature = SignatureOf(outputs)});
  }
}

int Run(int argc, char** argv) {
  Bench bench("mcts", argc, argv);
  nn::Team team(HardwareThreads());
  MeasureNet(bench, team);
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  try {
    return kibitz::bench::Run(argc, argv);
  } catch (const kibitz::Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    return 1;
  }
}
