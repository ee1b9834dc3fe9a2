// A residual network as a search runs it: evaluations a second at several batch sizes, beside the
// same network with direct convolution by packed products.
//
// The network has the shape of the Maia networks (112 planes, 6 blocks of 64 channels with squeeze
// and excitation, policy of 80 planes, three values) and random weights: speed does not depend on
// them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "bench/mcts_search.h"
#include "bench/peak.h"
#include "nn/conv/residual_net.h"
#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/linear.h"
#include "tests/support/residual_random.h"

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

// Seconds that this thread has run, however many others want its core.
double OwnSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Outputs {
  std::vector<float> policy;
  std::vector<float> value;
};

// --- The yardstick ---

// Channels from one square to the next: whole tiles of a product.
constexpr int64_t PaddedToTiles(int64_t channels) {
  return nn::RoundUp(channels, nn::kTileColumns);
}

constexpr int64_t kBordered = 10;  // Squares of a board's side with a border of zeros.

// Direct convolution of one board: for each place of the window a product of packed weights and
// four neighbouring squares. x and y: (10, 10, padded channels).
class DirectConv {
 public:
  explicit DirectConv(const ConvWeights& conv)
      : inputs_(conv.inputs),
        outputs_(conv.outputs),
        size_(conv.size),
        weights_(PaddedToTiles(conv.outputs) * conv.inputs * Window()),
        bias_(PaddedToTiles(conv.outputs)) {
    std::copy(conv.bias.begin(), conv.bias.end(), bias_.data());
    for (int64_t i = 0; i < static_cast<int64_t>(conv.weight.size()); ++i) {
      const int64_t n = i / (inputs_ * Window());
      const int64_t k = i / Window() % inputs_;
      const int64_t panel = n / nn::kTileColumns * Window() + i % Window();
      weights_[(panel * inputs_ + k) * nn::kTileColumns + n % nn::kTileColumns] =
          conv.weight[static_cast<size_t>(i)];
    }
  }

  int64_t outputs() const { return outputs_; }
  double Flops() const {
    return 2.0 * static_cast<double>(inputs_ * outputs_ * Window() * kSquares);
  }

  void Run(const float* x, float* y, bool relu) const {
    const int64_t x_row = PaddedToTiles(inputs_);
    const int64_t y_row = PaddedToTiles(outputs_);
    const int64_t reach = size_ / 2;
    for (int64_t column = 0; column < outputs_; column += nn::kTileColumns) {
      const float* weights = weights_.data() + column * inputs_ * Window();
      for (int64_t square = 0; square < kSquares; square += 4) {
        const int64_t place = (square / 8 + 1) * kBordered + square % 8 + 1;
        float* to = y + place * y_row + column;
        for (int64_t i = 0; i < Window(); ++i) {
          const int64_t step = (i / size_ - reach) * kBordered + i % size_ - reach;
          nn::GemmTile({.a = {.data = x + (place + step) * x_row, .row = x_row},
                        .b = weights + i * inputs_ * nn::kTileColumns,
                        .b_row = nn::kTileColumns,
                        .c = to,
                        .c_row = y_row,
                        .rows = 4,
                        .depth = inputs_,
                        .add = i > 0});
        }
        for (int64_t i = 0; i < 4 * nn::kTileColumns; i += nn::kLanes) {
          const int64_t lane = i % nn::kTileColumns;
          float* number = to + i / nn::kTileColumns * y_row + lane;
          const nn::Lanes sum = nn::Load(number) + nn::Load(bias_.data() + column + lane);
          nn::Store(number, relu ? nn::Relu(sum) : sum);
        }
      }
    }
  }

 private:
  int64_t Window() const { return size_ * size_; }

  int64_t inputs_;
  int64_t outputs_;
  int64_t size_;
  nn::AlignedArray<float> weights_;  // (panels, window, inputs, kTileColumns)
  nn::AlignedArray<float> bias_;
};

// The same network with direct convolution, a position after another on each thread.
class DirectNet {
 public:
  explicit DirectNet(const ResidualWeights& weights)
      : weights_(weights),
        hidden_({.weight = weights.value_hidden.weight,
                 .outputs = weights.value_hidden.outputs,
                 .inputs = weights.value_hidden.inputs,
                 .bias = weights.value_hidden.bias},
                Precision::kF32) {
    convs_.emplace_back(weights.input);
    for (const auto& block : weights.blocks) {
      convs_.emplace_back(block.first);
      convs_.emplace_back(block.second);
    }
    for (const auto* conv : {&weights.policy, &*weights.policy_planes, &weights.value}) {
      convs_.emplace_back(*conv);
    }
  }

  // Multiplications and additions for a position.
  double Flops() const {
    double flops = 2.0 * static_cast<double>(hidden_.inputs() * hidden_.outputs());
    for (const DirectConv& conv : convs_) flops += conv.Flops();
    return flops;
  }

  Outputs Run(nn::Team& team, std::span<const PlaneInput> positions) {
    const auto planes = static_cast<size_t>(weights_.policy_planes->outputs);
    const auto inputs = static_cast<size_t>(hidden_.inputs());
    Outputs outputs;
    outputs.policy.resize(positions.size() * kSquares * planes);
    std::vector<float> boards(positions.size() * inputs);
    team.Run(static_cast<int64_t>(positions.size()), [&](int64_t i) {
      const auto p = static_cast<size_t>(i);
      RunPosition(positions[p], outputs.policy.data() + p * kSquares * planes,
                  boards.data() + p * inputs);
    });
    const auto count = static_cast<int64_t>(positions.size());
    packed_.Pack(team, count, hidden_, [&](int64_t p, float* out) {
      std::copy_n(boards.data() + p * hidden_.inputs(), hidden_.inputs(), out);
    });
    std::vector<float> hidden(static_cast<size_t>(count * hidden_.outputs()));
    hidden_.Run(team, packed_, {.to = hidden.data(), .row = hidden_.outputs()});
    for (auto first = hidden.begin(); first != hidden.end(); first += hidden_.outputs()) {
      std::vector<float> own(first, first + hidden_.outputs());
      for (float& x : own) x = std::max(x, 0.0F);
      for (const float x : Dense(weights_.value_out, own)) outputs.value.push_back(x);
    }
    return outputs;
  }

 private:
  // The board's policy, and what the value's hidden layer takes.
  void RunPosition(const PlaneInput& position, float* policy, float* value) const {
    constexpr int64_t kMaxChannels = 128;
    static thread_local nn::AlignedArray<float> room(3 * kBordered * kBordered * kMaxChannels);
    float* x = room.data();
    float* y = x + kBordered * kBordered * kMaxChannels;
    float* z = y + kBordered * kBordered * kMaxChannels;
    std::fill_n(x, room.size(), 0.0F);
    Expand(position, y);
    convs_[0].Run(y, x, true);
    std::fill_n(y, z - y, 0.0F);  // Another width now: borders lie elsewhere.
    size_t conv = 1;
    for (const auto& block : weights_.blocks) {
      convs_[conv++].Run(x, y, true);
      convs_[conv++].Run(y, z, false);
      AddBlock(block, z, x);
    }
    convs_[conv].Run(x, y, true);
    convs_[conv + 1].Run(y, z, false);
    const int64_t planes = convs_[conv + 1].outputs();
    const int64_t channels = convs_[conv + 2].outputs();
    for (int64_t square = 0; square < kSquares; ++square) {
      std::copy_n(z + Place(square) * PaddedToTiles(planes), planes, policy + square * planes);
    }
    convs_[conv + 2].Run(x, y, true);
    for (int64_t i = 0; i < kSquares * channels; ++i) {
      value[i] = y[Place(i % kSquares) * PaddedToTiles(channels) + i / kSquares];
    }
  }

  static int64_t Place(int64_t square) { return (square / 8 + 1) * kBordered + square % 8 + 1; }

  static void Expand(const PlaneInput& position, float* x) {
    const int64_t row = PaddedToTiles(static_cast<int64_t>(position.squares.size()));
    for (size_t k = 0; k < position.squares.size(); ++k) {
      for (uint64_t left = position.squares[k]; left != 0; left &= left - 1) {
        x[Place(std::countr_zero(left)) * row + static_cast<int64_t>(k)] = position.values[k];
      }
    }
  }

  static std::vector<float> Dense(const DenseWeights& dense, const std::vector<float>& x) {
    std::vector<float> y = dense.bias;
    for (size_t n = 0; n < y.size(); ++n) {
      for (size_t k = 0; k < x.size(); ++k) y[n] += dense.weight[n * x.size() + k] * x[k];
    }
    return y;
  }

  // x = relu(x + squeeze(z))
  static void AddBlock(const nn::ResidualBlockWeights& block, const float* z, float* x) {
    const int64_t channels = block.second.outputs;
    const int64_t row = PaddedToTiles(channels);
    std::vector<float> means(static_cast<size_t>(channels));
    for (int64_t square = 0; square < kSquares; ++square) {
      for (size_t c = 0; c < means.size(); ++c)
        means[c] += z[Place(square) * row + static_cast<int64_t>(c)];
    }
    for (float& mean : means) mean /= kSquares;
    std::vector<float> small = Dense(block.squeeze->reduce, means);
    for (float& number : small) number = std::max(number, 0.0F);
    std::vector<float> factors = Dense(block.squeeze->expand, small);
    for (size_t c = 0; c < means.size(); ++c) factors[c] = 1 / (1 + std::exp(-factors[c]));
    for (int64_t square = 0; square < kSquares; ++square) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t i = Place(square) * row + c;
        x[i] = std::max(x[i] + z[i] * factors[static_cast<size_t>(c)] +
                            factors[static_cast<size_t>(channels + c)],
                        0.0F);
      }
    }
  }

  const ResidualWeights& weights_;
  std::vector<DirectConv> convs_;  // In the order of use.
  Linear hidden_;
  nn::PackedRows packed_;
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
  double max = 0;
  for (size_t i = 0; i < a.policy.size(); ++i) {
    max = std::max(max, std::fabs(static_cast<double>(a.policy[i]) - b.policy[i]));
  }
  for (size_t i = 0; i < a.value.size(); ++i) {
    max = std::max(max, std::fabs(static_cast<double>(a.value[i]) - b.value[i]));
  }
  return max;
}

// Evaluations a second, and multiplications and additions a second.
struct Measured {
  double f32 = 0;
  double direct = 0;
  double peak = 0;
};

class NetBench {
 public:
  NetBench(Bench& bench, nn::Team& team)
      : bench_(bench),
        team_(team),
        weights_(nn::RandomResidualWeights({}, kSeed)),
        f32_(weights_),
        direct_(weights_) {
    for (int i = 0; i < kPositions; ++i) {
      boards_.emplace_back(f32_.planes(), static_cast<uint64_t>(i));
    }
    for (const auto& board : boards_) positions_.push_back(board.input());
  }

  // Outputs first: a faster wrong answer shows.
  void Compare() {
    const Outputs direct = direct_.Run(team_, positions_);
    const Outputs f32 = Evaluate(f32_, team_, positions_);
    const double difference = LargestDifference(f32, direct);
    if (difference > 1e-3) bench_.Fail("the outputs are not those of direct convolution");
    bench_.Say(
        fmt::format("{} threads; a position is {:.1f} MFLOP by direct convolution, {:.1f} in "
                    "our products; outputs differ by {:.0e} at most",
                    team_.size(), direct_.Flops() / 1e6, f32_.ProductFlops() / 1e6, difference));
    f32_signature_ = SignatureOf(f32);
  }

  void MeasureAndReport(size_t batch) {
    const Measured measured = Measure(batch);
    bench_.Report({.name = fmt::format("evaluations, batch {}, f32", batch),
                   .value = measured.f32,
                   .unit = "positions/s",
                   .yardstick = measured.direct,
                   .yardstick_name = "direct convolution",
                   .signature = f32_signature_,
                   .promised_ratio = batch >= 16 ? std::optional(1.5) : std::nullopt});
    ReportShare(fmt::format("products, batch {}, f32", batch), measured.f32 * f32_.ProductFlops(),
                measured.peak);
    ReportShare(fmt::format("as direct, batch {}, f32", batch), measured.f32 * direct_.Flops(),
                measured.peak);
  }

  // One thread by its own time: what a core can do, also on a busy machine.
  void MeasureOneThread(size_t batch) {
    nn::Team alone(1);
    const auto some = std::span(positions_).first(batch);
    policy_.resize(batch * static_cast<size_t>(f32_.policy_size()));
    value_.resize(batch * static_cast<size_t>(f32_.value_size()));
    const auto rate = [&](const std::function<void()>& work) {
      const double start = OwnSeconds();
      work();
      return static_cast<double>(batch) / (OwnSeconds() - start);
    };
    const auto run = [&](nn::ResidualNet& net) {
      return rate([&] { net.Run(alone, some, policy_.data(), value_.data()); });
    };
    std::vector<double> f32;
    std::vector<double> direct;
    for (int round = 0; round < (bench_.quick() ? 15 : 75); ++round) {
      f32.push_back(run(f32_));
      direct.push_back(rate([&] { direct_.Run(alone, some); }));
    }
    bench_.Report({.name = fmt::format("one thread's time, batch {}, f32", batch),
                   .value = Median(f32),
                   .unit = "positions/s",
                   .yardstick = Median(direct),
                   .yardstick_name = "direct convolution",
                   .signature = f32_signature_,
                   .promised_ratio = 2});
  }

 private:
  // All positions in batches, so that a round takes as long for each size.
  double SecondsOfNet(nn::ResidualNet& net, size_t batch) {
    policy_.resize(batch * static_cast<size_t>(net.policy_size()));
    value_.resize(batch * static_cast<size_t>(net.value_size()));
    return SecondsOf([&] {
      for (size_t i = 0; i + batch <= positions_.size(); i += batch) {
        net.Run(team_, std::span(positions_).subspan(i, batch), policy_.data(), value_.data());
      }
    });
  }

  // The same on a quarter of the positions.
  double SecondsOfDirect(size_t batch) {
    const size_t some = std::max<size_t>(batch, kPositions / 4);
    const double seconds = SecondsOf([&] {
      for (size_t i = 0; i + batch <= some; i += batch) {
        direct_.Run(team_, std::span(positions_).subspan(i, batch));
      }
    });
    return seconds * kPositions / static_cast<double>(some);
  }

  // In turns: what disturbs one disturbs the others.
  Measured Measure(size_t batch) {
    std::vector<double> f32;
    std::vector<double> direct;
    std::vector<double> peaks;
    for (int round = 0; round < (bench_.quick() ? 5 : 25); ++round) {
      peaks.push_back(MeasurePeak(1));
      f32.push_back(SecondsOfNet(f32_, batch));
      direct.push_back(SecondsOfDirect(batch));
    }
    return {kPositions / Median(f32), kPositions / Median(direct), Median(peaks)};
  }

  void ReportShare(const std::string& name, double flops, double peak) {
    bench_.Report({.name = name,
                   .value = flops / 1e9,
                   .unit = "GFLOP/s",
                   .yardstick = peak / 1e9,
                   .yardstick_name = "f32 peak",
                   .signature = f32_signature_});
  }

  Bench& bench_;
  nn::Team& team_;
  ResidualWeights weights_;
  nn::ResidualNet f32_;
  DirectNet direct_;
  std::vector<nn::RandomPlanes> boards_;
  std::vector<PlaneInput> positions_;
  std::vector<float> policy_;
  std::vector<float> value_;
  uint64_t f32_signature_ = 0;
};

int Run(int argc, char** argv) {
  Bench bench("mcts", argc, argv,
              {{.name = "lc0", .help = "an lc0 to race with the same network, in turns"}});
  nn::Team team(HardwareThreads());
  NetBench net(bench, team);
  net.Compare();
  net.MeasureOneThread(32);
  for (const size_t batch : {1U, 16U, 64U, 256U}) net.MeasureAndReport(batch);
  ReportSearches(bench);
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
