#include "nn/conv/residual_net.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/error.h"
#include "nn/kernels/linear.h"

namespace kibitz::nn {
namespace {

// Positions that a thread takes through all layers together: few enough for their activations to
// fit L2, and enough to make reading the weights from L3 worth it.
constexpr int64_t kGroup = 6;

void CheckConv(const ConvWeights& conv, int64_t inputs, std::string_view name) {
  if (conv.inputs != inputs || conv.outputs < 1 || (conv.size != 1 && conv.size != 3) ||
      static_cast<int64_t>(conv.weight.size()) !=
          conv.inputs * conv.outputs * conv.size * conv.size ||
      static_cast<int64_t>(conv.bias.size()) != conv.outputs) {
    throw Error(
        "residual network, {}: {} to {} channels, {}x{}, {} weights and {} biases do not match "
        "each "
        "other and the {} channels before it; the weights file is damaged or of another kind",
        name, conv.inputs, conv.outputs, conv.size, conv.size, conv.weight.size(), conv.bias.size(),
        inputs);
  }
}

void CheckDense(const DenseWeights& dense, int64_t inputs, std::string_view name) {
  if (dense.inputs != inputs || dense.outputs < 1 ||
      static_cast<int64_t>(dense.weight.size()) != dense.inputs * dense.outputs ||
      static_cast<int64_t>(dense.bias.size()) != dense.outputs) {
    throw Error(
        "residual network, {}: {} inputs, {} outputs, {} weights and {} biases do not match each "
        "other and the {} numbers before it; the weights file is damaged or of another kind",
        name, dense.inputs, dense.outputs, dense.weight.size(), dense.bias.size(), inputs);
  }
}

void CheckBlock(const ResidualBlockWeights& block, int64_t channels, const std::string& name) {
  CheckConv(block.first, channels, name + ", first convolution");
  CheckConv(block.second, block.first.outputs, name + ", second convolution");
  if (block.second.outputs != channels) {
    throw Error("residual network, {}: {} channels come out of {}; they must be as many", name,
                block.second.outputs, channels);
  }
  if (!block.squeeze) return;
  CheckDense(block.squeeze->reduce, channels, name + ", squeeze");
  CheckDense(block.squeeze->expand, block.squeeze->reduce.outputs, name + ", excitation");
  if (block.squeeze->expand.outputs != 2 * channels) {
    throw Error("residual network, {}, excitation: {} outputs; expected {}, two for each channel",
                name, block.squeeze->expand.outputs, 2 * channels);
  }
}

void CheckSizes(const ResidualWeights& weights) {
  CheckConv(weights.input, weights.input.inputs, "input");
  if (weights.input.size != 3) throw Error("residual network, input: the window must be 3x3");
  const int64_t channels = weights.input.outputs;
  for (size_t i = 0; i < weights.blocks.size(); ++i) {
    CheckBlock(weights.blocks[i], channels, fmt::format("block {}", i + 1));
  }
  CheckConv(weights.policy, channels, "policy head");
  if (weights.policy_planes.has_value() == weights.policy_dense.has_value()) {
    throw Error(
        "residual network: the policy head must end in planes or in a dense layer, {} are there",
        weights.policy_planes ? "both" : "none");
  }
  if (weights.policy_planes) {
    CheckConv(*weights.policy_planes, weights.policy.outputs, "policy planes");
  } else {
    CheckDense(*weights.policy_dense, weights.policy.outputs * kSquares, "policy");
  }
  CheckConv(weights.value, channels, "value head");
  CheckDense(weights.value_hidden, weights.value.outputs * kSquares, "value, hidden layer");
  CheckDense(weights.value_out, weights.value_hidden.outputs, "value");
}

// A dense layer over the channels of all squares, its weights reordered square by square.
Linear SquareMajor(const DenseWeights& dense, int64_t channels) {
  const int64_t row = PaddedChannels(channels);
  std::vector<float> weight(static_cast<size_t>(dense.outputs * kSquares * row));
  for (int64_t n = 0; n < dense.outputs; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t square = 0; square < kSquares; ++square) {
        weight[static_cast<size_t>((n * kSquares + square) * row + c)] =
            dense.weight[static_cast<size_t>((n * channels + c) * kSquares + square)];
      }
    }
  }
  return Linear(
      {.weight = weight, .outputs = dense.outputs, .inputs = kSquares * row, .bias = dense.bias},
      Precision::kF32);
}

// --- Squeeze and excitation ---

class Squeeze {
 public:
  Squeeze(const SqueezeWeights& weights, Activation activation)
      : channels_(weights.reduce.inputs),
        row_(PaddedChannels(channels_)),
        activation_(activation),
        reduce_(weights.reduce),
        expand_(Halves(weights.expand)) {}

  size_t memory_bytes() const { return reduce_.memory_bytes() + expand_.memory_bytes(); }

  // x = activation(x + sigmoid(first) * y + second). Both: (P, 64, row).
  void Run(int64_t positions, const float* y, float* x) const {
    const int64_t reduced = PaddedChannels(reduce_.outputs());
    std::vector<float> room(static_cast<size_t>(positions * (3 * row_ + reduced)));
    float* means = room.data();                    // (P, row)
    float* small = means + positions * row_;       // (P, reduced)
    float* factors = small + positions * reduced;  // (P, 2 row)
    for (int64_t p = 0; p < positions; ++p) Mean(y + p * kSquares * row_, means + p * row_);
    reduce_.Run({.count = positions, .x = means, .x_row = row_, .y = small, .y_row = reduced},
                activation_);
    expand_.Run({.count = positions, .x = small, .x_row = reduced, .y = factors, .y_row = 2 * row_},
                std::nullopt);
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t board = p * kSquares * row_;
      float* own = factors + p * 2 * row_;
      for (int64_t c = 0; c < row_; c += kLanes) Store(own + c, Sigmoid(Load(own + c)));
      WithActivation(activation_,
                     [&](const auto& activate) { Excite(own, y + board, x + board, activate); });
    }
  }

 private:
  // Pads the first and the second half to whole tiles.
  static DenseWeights Halves(const DenseWeights& expand) {
    const int64_t channels = expand.outputs / 2;
    const int64_t row = PaddedChannels(channels);
    DenseWeights halves = {.inputs = expand.inputs, .outputs = 2 * row, .weight = {}, .bias = {}};
    halves.weight.resize(static_cast<size_t>(halves.inputs * halves.outputs));
    halves.bias.resize(static_cast<size_t>(halves.outputs));
    for (int64_t half = 0; half < 2; ++half) {
      std::copy_n(expand.weight.begin() + half * channels * expand.inputs, channels * expand.inputs,
                  halves.weight.begin() + half * row * expand.inputs);
      std::copy_n(expand.bias.begin() + half * channels, channels,
                  halves.bias.begin() + half * row);
    }
    return halves;
  }

  void Mean(const float* board, float* mean) const {
    for (int64_t c = 0; c < row_; c += kLanes) {
      Lanes even{};
      Lanes odd{};
      for (int64_t square = 0; square < kSquares; square += 2) {
        even += Load(board + square * row_ + c);
        odd += Load(board + (square + 1) * row_ + c);
      }
      Store(mean + c, (even + odd) * (1.0F / kSquares));
    }
  }

  template <typename Activate>
  void Excite(const float* factors, const float* y, float* x, const Activate& activate) const {
    for (int64_t square = 0; square < kSquares; ++square, x += row_, y += row_) {
      for (int64_t c = 0; c < row_; c += kLanes) {
        const Lanes offset = Load(x + c) + Load(factors + row_ + c);
        Store(x + c, activate(Load(y + c) * Load(factors + c) + offset));
      }
    }
  }

  int64_t channels_;
  int64_t row_;
  Activation activation_;
  CachedLinear reduce_;
  CachedLinear expand_;
};

struct Block {
  Conv first;
  Conv second;
  std::optional<Squeeze> squeeze;
};

// Activations and scratch memory of a thread.
struct Room {
  PlaneConv::Room planes;
  ConvRoom conv;
  AlignedArray<float> x;       // (P, 64, channels): the residual stream.
  AlignedArray<float> inside;  // Within a block or a head.
  AlignedArray<float> out;
};

}  // namespace

// --- The network ---

struct ResidualNet::Parts {
  FloatPool pool;
  Activation activation = Activation::kRelu;
  PlaneConv input;
  std::vector<Block> blocks;
  Conv policy;
  std::optional<Conv> policy_planes;
  std::optional<Linear> policy_dense;
  Conv value;
  Linear value_hidden;
  CachedLinear value_out;

  std::vector<Room> rooms;            // For each thread.
  int64_t widest = 0;                 // Channels of any layer, padded.
  AlignedArray<float> policy_boards;  // (N, 64, channels): of a classical head, before its end.
  AlignedArray<float> value_boards;   // The same of the value head.
  AlignedArray<float> hidden;         // (N, value_hidden)
  AlignedArray<float> result;         // (N, value_out), padded.
  PackedRows packed;

  explicit Parts(const ResidualWeights& weights);
  // All positions, a group at a time on each thread.
  void RunGroups(Team& team, std::span<const PlaneInput> positions, float* policy);
  // One position, whose convolutions all threads share.
  void RunAlone(Team& team, const PlaneInput& position, float* policy);
  // The layers of some positions, from `first` on, up to what all share. run(conv, x, y, finish)
  // runs a convolution over them.
  using RunConv = std::function<void(const Conv&, const float*, float*, const ConvFinish&)>;
  void RunLayers(std::span<const PlaneInput> positions, int64_t first, float* policy, Room& room,
                 const RunConv& run);
  void RunBlock(const Block& block, int64_t positions, Room& room, const RunConv& run) const;
  void RunPolicy(int64_t first, int64_t positions, float* policy, Room& room, const RunConv& run);
  void FinishValue(Team& team, int64_t positions, float* value);
  int64_t HiddenRow() const { return PaddedChannels(value_hidden.outputs()); }
};

ResidualNet::Parts::Parts(const ResidualWeights& weights)
    : activation(weights.activation),
      input(weights.input, pool),
      policy(weights.policy, pool),
      value(weights.value, pool),
      value_hidden(SquareMajor(weights.value_hidden, weights.value.outputs)),
      value_out(weights.value_out) {
  widest = PaddedChannels(std::max(weights.input.outputs, weights.policy.outputs));
  for (const ResidualBlockWeights& block : weights.blocks) {
    blocks.push_back({Conv(block.first, pool), Conv(block.second, pool), std::nullopt});
    if (block.squeeze) blocks.back().squeeze.emplace(*block.squeeze, activation);
    widest = std::max(widest, PaddedChannels(block.first.outputs));
  }
  if (weights.policy_planes) {
    policy_planes.emplace(*weights.policy_planes, pool);
    widest = std::max(widest, PaddedChannels(policy_planes->outputs()));
  } else {
    policy_dense = SquareMajor(*weights.policy_dense, policy.outputs());
  }
}

void ResidualNet::Parts::RunGroups(Team& team, std::span<const PlaneInput> positions,
                                   float* policy_out) {
  const auto count = static_cast<int64_t>(positions.size());
  const int64_t threads = std::min<int64_t>(team.size(), count);
  // The same number of groups for each thread, of equal size.
  const int64_t groups = RoundUp((count + kGroup - 1) / kGroup, threads);
  std::atomic<int64_t> next = 0;
  team.Run(threads, [&](int64_t thread) {
    Room& room = rooms[static_cast<size_t>(thread)];
    for (int64_t group = next++; group < groups; group = next++) {
      const int64_t first = count * group / groups;
      const int64_t size = count * (group + 1) / groups - first;
      if (size == 0) continue;
      RunLayers(positions.subspan(static_cast<size_t>(first), static_cast<size_t>(size)), first,
                policy_out, room,
                [&](const Conv& conv, const float* x, float* y, const ConvFinish& finish) {
                  conv.Run(size, x, y, finish, room.conv);
                });
    }
  });
}

void ResidualNet::Parts::RunAlone(Team& team, const PlaneInput& position, float* policy_out) {
  RunLayers({&position, 1}, 0, policy_out, rooms[0],
            [&](const Conv& conv, const float* x, float* y, const ConvFinish& finish) {
              const int64_t parts = std::min<int64_t>(team.size(), conv.panels());
              if (parts < 2) return conv.Run(1, x, y, finish, rooms[0].conv);
              team.Run(parts, [&](int64_t part) {
                conv.RunPart({part, parts}, x, y, finish, rooms[static_cast<size_t>(part)].conv);
              });
            });
}

void ResidualNet::Parts::RunLayers(std::span<const PlaneInput> positions, int64_t first,
                                   float* policy_out, Room& room, const RunConv& run) {
  const auto count = static_cast<int64_t>(positions.size());
  const int64_t row = PaddedChannels(input.outputs());
  for (AlignedArray<float>* array : {&room.x, &room.inside, &room.out}) {
    array->Reserve(count * kSquares * widest);
  }
  for (int64_t p = 0; p < count; ++p) {
    input.Run(positions[static_cast<size_t>(p)], room.x.data() + p * kSquares * row, activation,
              room.planes);
  }
  for (const Block& block : blocks) RunBlock(block, count, room, run);
  RunPolicy(first, count, policy_out, room, run);
  run(value, room.x.data(),
      value_boards.data() + first * kSquares * PaddedChannels(value.outputs()),
      {.activation = activation});
}

void ResidualNet::Parts::RunBlock(const Block& block, int64_t positions, Room& room,
                                  const RunConv& run) const {
  run(block.first, room.x.data(), room.inside.data(), {.activation = activation});
  if (block.squeeze) {
    run(block.second, room.inside.data(), room.out.data(), {});
    block.squeeze->Run(positions, room.out.data(), room.x.data());
  } else {
    run(block.second, room.inside.data(), room.x.data(),
        {.skip = room.x.data(), .activation = activation});
  }
}

void ResidualNet::Parts::RunPolicy(int64_t first, int64_t positions, float* to, Room& room,
                                   const RunConv& run) {
  if (policy_dense) {
    const int64_t row = PaddedChannels(policy.outputs());
    return run(policy, room.x.data(), policy_boards.data() + first * kSquares * row,
               {.activation = activation});
  }
  run(policy, room.x.data(), room.inside.data(), {.activation = activation});
  const int64_t planes = policy_planes->outputs();
  const int64_t row = PaddedChannels(planes);
  float* own = to + first * kSquares * planes;
  float* out = row == planes ? own : room.out.data();
  run(*policy_planes, room.inside.data(), out, {});
  if (out == own) return;
  for (int64_t square = 0; square < positions * kSquares; ++square) {
    std::copy_n(out + square * row, planes, own + square * planes);
  }
}

void ResidualNet::Parts::FinishValue(Team& team, int64_t positions, float* value_to) {
  const int64_t inputs = value_hidden.inputs();
  const int64_t row = HiddenRow();
  packed.Pack(team, positions, value_hidden, [&](int64_t p, float* out) {
    std::copy_n(value_boards.data() + p * inputs, inputs, out);
  });
  hidden.Reserve(positions * row);
  value_hidden.Run(team, packed, {.to = hidden.data(), .row = row});
  for (int64_t i = 0; i < positions * row; i += kLanes) {
    Store(hidden.data() + i, Apply(activation, Load(hidden.data() + i)));
  }
  const int64_t result_row = PaddedChannels(value_out.outputs());
  result.Reserve(positions * result_row);
  value_out.Run({.count = positions,
                 .x = hidden.data(),
                 .x_row = row,
                 .y = result.data(),
                 .y_row = result_row},
                std::nullopt);
  for (int64_t p = 0; p < positions; ++p) {
    std::copy_n(result.data() + p * result_row, value_out.outputs(),
                value_to + p * value_out.outputs());
  }
}

ResidualNet::ResidualNet(const ResidualWeights& weights) {
  CheckSizes(weights);
  parts_ = std::make_unique<Parts>(weights);
}

ResidualNet::~ResidualNet() = default;
ResidualNet::ResidualNet(ResidualNet&&) noexcept = default;
ResidualNet& ResidualNet::operator=(ResidualNet&&) noexcept = default;

int64_t ResidualNet::planes() const { return parts_->input.inputs(); }

int64_t ResidualNet::policy_size() const {
  if (parts_->policy_dense) return parts_->policy_dense->outputs();
  return parts_->policy_planes->outputs() * kSquares;
}

int64_t ResidualNet::value_size() const { return parts_->value_out.outputs(); }

size_t ResidualNet::memory_bytes() const {
  size_t bytes = parts_->input.memory_bytes() + parts_->policy.memory_bytes() +
                 parts_->value.memory_bytes() + parts_->value_hidden.memory_bytes() +
                 parts_->value_out.memory_bytes();
  for (const Block& block : parts_->blocks) {
    bytes += block.first.memory_bytes() + block.second.memory_bytes();
    if (block.squeeze) bytes += block.squeeze->memory_bytes();
  }
  if (parts_->policy_planes) bytes += parts_->policy_planes->memory_bytes();
  if (parts_->policy_dense) bytes += parts_->policy_dense->memory_bytes();
  return bytes;
}

double ResidualNet::ProductFlops() const {
  const auto dense = [](const Linear& linear) {
    return 2.0 * static_cast<double>(linear.inputs() * linear.outputs());
  };
  double flops =
      parts_->policy.ProductFlops() + parts_->value.ProductFlops() + dense(parts_->value_hidden);
  for (const Block& block : parts_->blocks) {
    flops += block.first.ProductFlops() + block.second.ProductFlops();
  }
  if (parts_->policy_planes) flops += parts_->policy_planes->ProductFlops();
  if (parts_->policy_dense) flops += dense(*parts_->policy_dense);
  return flops;
}

void ResidualNet::Run(Team& team, std::span<const PlaneInput> positions, float* policy,
                      float* value) {
  Parts& parts = *parts_;
  const auto count = static_cast<int64_t>(positions.size());
  if (count == 0) return;
  parts.rooms.resize(std::max(parts.rooms.size(), static_cast<size_t>(team.size())));
  parts.value_boards.Reserve(count * kSquares * PaddedChannels(parts.value.outputs()));
  if (parts.policy_dense) {
    parts.policy_boards.Reserve(count * kSquares * PaddedChannels(parts.policy.outputs()));
  }
  count == 1 && team.size() > 1 ? parts.RunAlone(team, positions[0], policy)
                                : parts.RunGroups(team, positions, policy);
  if (parts.policy_dense) {
    const int64_t inputs = parts.policy_dense->inputs();
    parts.packed.Pack(team, count, *parts.policy_dense, [&](int64_t p, float* out) {
      std::copy_n(parts.policy_boards.data() + p * inputs, inputs, out);
    });
    parts.policy_dense->Run(team, parts.packed, {.to = policy, .row = policy_size()});
  }
  parts.FinishValue(team, count, value);
}

}  // namespace kibitz::nn
