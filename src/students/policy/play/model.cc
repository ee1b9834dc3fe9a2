#include "students/policy/play/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "io/weights/state_dict.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/gelu.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {
namespace {

constexpr int64_t kBoardsOfPass = 8;  // That a thread takes through the convolutions together.
// That the linear layers see together: their weights are large, and come from far for each group.
constexpr int64_t kBoardsOfGroup = 512;
constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kRmsNormEpsilon = std::numeric_limits<float>::epsilon();

nn::Linear MakeLinear(std::span<const float> weight, std::span<const float> bias, int64_t inputs) {
  return nn::Linear({.weight = weight,
                     .outputs = static_cast<int64_t>(bias.size()),
                     .inputs = inputs,
                     .bias = bias},
                    nn::Precision::kF32);
}

}  // namespace

// Buffers for a few positions. A thread runs its own positions through all convolutions.
struct Model::Workspace {
  nn::Team alone{1};
  nn::PackedRows packed;
  nn::ConvRoom room;
  nn::AlignedArray<float> inputs;  // (B, 64, I), rows as RowOf says.
  nn::AlignedArray<float> x;       // (B, 64, C), the same.
  nn::AlignedArray<float> y;       // The same.
  nn::AlignedArray<float> z;       // The same.
};

Model::Model(const io::ModelFile& file, const nn::NetworkOptions& options)
    : config_(ConfigOf(file)), team_(options.threads) {
  if (options.precision != nn::Precision::kF32) {
    throw Error::Usage("{}: a policy runs in f32 only", file.place);
  }
  if (config_.IsCnn()) {
    ReadCnn(file.weights);
  } else {
    ReadMlp(file.weights);
  }
}

Model::~Model() = default;

void Model::ReadMlp(const io::StateDict& weights) {
  int64_t width = kFlatInputs;
  for (int i = 0; i <= config_.num_layers; ++i) {
    const int64_t next = i == config_.num_layers ? config_.num_moves : config_.hidden_size;
    const std::string name = fmt::format("net.{}.", 2 * i);
    linears_.push_back(MakeLinear(weights.Floats(name + "weight", {next, width}),
                                  weights.Floats(name + "bias", {next}), width));
    width = next;
  }
}

int64_t Model::RowOf(int64_t channels) const {
  return small_windows() ? nn::PaddedChannels(channels) : channels;
}

Model::Convolution Model::ReadConv(const io::StateDict& weights, const std::string& name,
                                   int64_t inputs) {
  const int64_t outputs = config_.hidden_channels;
  const int64_t k = config_.kernel_size;
  std::vector<float> weight = weights.Floats(name + ".weight", {outputs, inputs, k, k});
  std::vector<float> bias = weights.Floats(name + ".bias", {outputs});
  Convolution conv;
  if (small_windows()) {
    conv.small = nn::Conv({.inputs = inputs,
                           .outputs = outputs,
                           .size = k,
                           .weight = std::move(weight),
                           .bias = std::move(bias)},
                          pool_);
    return conv;
  }
  std::vector<float> transposed(weight.size());  // Rows of [window][channel].
  for (int64_t out = 0; out < outputs; ++out) {
    for (int64_t in = 0; in < inputs; ++in) {
      for (int64_t tap = 0; tap < k * k; ++tap) {
        transposed[static_cast<size_t>((out * k * k + tap) * inputs + in)] =
            weight[static_cast<size_t>((out * inputs + in) * k * k + tap)];
      }
    }
  }
  conv.wide = MakeLinear(transposed, bias, inputs * k * k);
  return conv;
}

Model::Norm Model::ReadNorm(const io::StateDict& weights, const std::string& name,
                            const std::vector<int64_t>& shape) const {
  const int64_t channels = config_.hidden_channels;
  const auto transposed = [&](const std::string& part) {
    const std::vector<float> from = weights.Floats(name + part, shape);
    const int64_t row = RowOf(channels);
    std::vector<float> to(static_cast<size_t>(64 * row));
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t square = 0; square < 64; ++square) {
        to[static_cast<size_t>(square * row + channel)] =
            from[static_cast<size_t>(channel * 64 + square)];
      }
    }
    return to;
  };
  Norm norm;
  norm.weight = transposed(".weight");
  if (config_.norm == NormKind::kLayerNorm) norm.bias = transposed(".bias");
  return norm;
}

void Model::ReadCnn(const io::StateDict& weights) {
  const int64_t channels = config_.hidden_channels;
  input_ = ReadConv(weights, "layers.0", config_.form().channels());
  for (int i = 0; i < config_.num_layers; ++i) {
    const std::string name = fmt::format("layers.{}.", i + 2);
    blocks_.push_back({.ln1 = ReadNorm(weights, name + "ln1", {channels, 8, 8}),
                       .conv1 = ReadConv(weights, name + "conv1", channels),
                       .ln2 = ReadNorm(weights, name + "ln2", {channels, 8, 8}),
                       .conv2 = ReadConv(weights, name + "conv2", channels)});
  }
  out_norm_ = ReadNorm(weights, "out_ln", {channels * 64});
  ReadOutput(weights);
}

void Model::ReadOutput(const io::StateDict& weights) {
  const int64_t channels = config_.hidden_channels;
  if (config_.HasPlanes()) {
    const std::vector<float> zeros(2 * kMovePlanes);
    move_bias_ = weights.Floats("output.bias", {config_.num_moves});
    linears_.push_back(
        MakeLinear(weights.Floats("output.weight", {2 * kMovePlanes, channels}), zeros, channels));
    return;
  }
  const int64_t moves = config_.num_moves;
  const std::vector<float> weight = weights.Floats("output.weight", {moves, channels * 64});
  std::vector<float> transposed(weight.size());  // Channels innermost, as all boards here.
  for (int64_t move = 0; move < moves; ++move) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t square = 0; square < 64; ++square) {
        transposed[static_cast<size_t>((move * 64 + square) * channels + channel)] =
            weight[static_cast<size_t>((move * channels + channel) * 64 + square)];
      }
    }
  }
  linears_.push_back(MakeLinear(transposed, weights.Floats("output.bias", {moves}), channels * 64));
}

size_t Model::memory_bytes() const {
  const auto bytes_of = [](const Convolution& conv) {
    return conv.small.memory_bytes() + conv.wide.memory_bytes();
  };
  size_t bytes = bytes_of(input_);
  for (const Block& block : blocks_) bytes += bytes_of(block.conv1) + bytes_of(block.conv2);
  for (const nn::Linear& linear : linears_) bytes += linear.memory_bytes();
  return bytes;
}

void Model::Convolve(const Convolution& conv, const float* from, int64_t channels, int64_t boards,
                     Workspace& space, float* to) const {
  if (small_windows()) return conv.small.Run(boards, from, to, {}, space.room);
  ConvolveWide(conv.wide, from, channels, boards, space, to);
}

void Model::ConvolveWide(const nn::Linear& conv, const float* from, int64_t channels,
                         int64_t boards, Workspace& space, float* to) const {
  const int64_t k = config_.kernel_size;
  const int64_t reach = k / 2;
  space.packed.Pack(space.alone, boards * 64, conv, [&](int64_t row, float* out) {
    const float* board = from + row / 64 * 64 * channels;
    const int64_t rank = row % 64 / 8;
    const int64_t file = row % 8;
    for (int64_t y = rank - reach; y <= rank + reach; ++y) {
      for (int64_t x = file - reach; x <= file + reach; ++x, out += channels) {
        if (y < 0 || y > 7 || x < 0 || x > 7) {
          std::fill_n(out, channels, 0.0F);
        } else {
          std::copy_n(board + (y * 8 + x) * channels, channels, out);
        }
      }
    }
  });
  conv.Run(space.alone, space.packed, {.to = to, .row = conv.outputs()});
}

void Model::Normalise(const Norm& norm, const float* from, int64_t boards, float* to) const {
  const bool layer = config_.norm == NormKind::kLayerNorm;
  const auto size = static_cast<int64_t>(norm.weight.size());
  const nn::NormRows rows = {
      .weight = norm.weight.data(),
      .bias = layer ? norm.bias.data() : nullptr,
      .size = size,
      .count = 64 * config_.hidden_channels,
      .epsilon = static_cast<float>(layer ? kLayerNormEpsilon : kRmsNormEpsilon)};
  for (int64_t board = 0; board < boards; ++board, from += size, to += size) {
    nn::Normalise(rows, nn::SumsOf(rows, from), from, to);
  }
}

void Model::WriteInputs(std::span<const PackedPosition> positions, Workspace& space) const {
  const int64_t channels = config_.form().channels();
  const int64_t row = RowOf(channels);
  space.inputs.Reserve(static_cast<int64_t>(positions.size()) * 64 * row);
  float* to = space.inputs.data();
  std::vector<float> board(static_cast<size_t>(64 * channels));
  for (const PackedPosition& position : positions) {
    policy::WriteInputs(position, config_.form(), board.data());
    for (int64_t square = 0; square < 64; ++square, to += row) {
      std::copy_n(board.data() + square * channels, channels, to);
      std::fill_n(to + channels, row - channels, 0.0F);
    }
  }
}

void Model::RunCnn(std::span<const PackedPosition> positions, Workspace& space,
                   float* features) const {
  const auto boards = static_cast<int64_t>(positions.size());
  const int64_t inputs = config_.form().channels();
  const int64_t channels = config_.hidden_channels;
  const int64_t row = RowOf(channels);
  const int64_t size = boards * 64 * row;
  for (nn::AlignedArray<float>* array : {&space.x, &space.y, &space.z}) array->Reserve(size);
  WriteInputs(positions, space);
  float* x = space.x.data();
  float* y = space.y.data();
  float* z = space.z.data();
  Convolve(input_, space.inputs.data(), inputs, boards, space, x);
  nn::ApplyGelu(x, size, x, false);
  for (const Block& block : blocks_) {
    Normalise(block.ln1, x, boards, y);
    Convolve(block.conv1, y, channels, boards, space, z);
    nn::ApplyGelu(z, size, z, false);
    Normalise(block.ln2, z, boards, y);
    Convolve(block.conv2, y, channels, boards, space, z);
    nn::ApplyGelu(z, size, x, true);
  }
  Normalise(out_norm_, x, boards, y);
  for (int64_t square = 0; square < boards * 64; ++square, features += channels) {
    std::copy_n(y + square * row, channels, features);
  }
}

void Model::RunPasses(std::span<const PackedPosition> positions) {
  const auto total = static_cast<int64_t>(positions.size());
  features_.Reserve(total * 64 * config_.hidden_channels);
  team_.Run((total + kBoardsOfPass - 1) / kBoardsOfPass, [&](int64_t pass) {
    const int64_t begin = pass * kBoardsOfPass;
    const auto some = positions.subspan(
        static_cast<size_t>(begin), static_cast<size_t>(std::min(kBoardsOfPass, total - begin)));
    float* features = features_.data() + begin * 64 * config_.hidden_channels;
    workspaces_.Borrow([&](Workspace& space) { RunCnn(some, space, features); });
  });
}

void Model::RunPlanes(int64_t total, float* logits) {
  const nn::Linear& linear = linears_.front();
  constexpr int64_t kRow = 2 * kMovePlanes;
  planes_.Reserve(total * 64 * kRow);
  packed_.Pack(team_, total * 64, linear, features_.data(), linear.inputs());
  linear.Run(team_, packed_, {.to = planes_.data(), .row = kRow});
  team_.Run(total, [&](int64_t board) {
    const float* planes = planes_.data() + board * 64 * kRow;
    float* out = logits + board * config_.num_moves;
    for (const MovePlane& move : MovePlanes()) {
      *out++ =
          planes[move.from * kRow + move.plane] + planes[move.to * kRow + kMovePlanes + move.plane];
    }
    out -= config_.num_moves;
    for (int64_t i = 0; i < config_.num_moves; ++i) out[i] += move_bias_[static_cast<size_t>(i)];
  });
}

void Model::RunLinears(std::span<const PackedPosition> positions, float* logits) {
  const auto total = static_cast<int64_t>(positions.size());
  if (config_.HasPlanes()) return RunPlanes(total, logits);
  if (!config_.IsCnn()) features_.Reserve(total * config_.hidden_size);
  for (size_t layer = 0; layer < linears_.size(); ++layer) {
    const nn::Linear& linear = linears_[layer];
    packed_.Pack(team_, total, linear, [&](int64_t row, float* out) {
      const float* from = features_.data() + row * linear.inputs();
      if (config_.IsCnn()) {
        std::copy_n(from, linear.inputs(), out);
      } else if (layer == 0) {
        policy::WriteInputs(positions[static_cast<size_t>(row)], config_.form(), out);
      } else {
        for (int64_t i = 0; i < linear.inputs(); ++i) out[i] = std::max(0.0F, from[i]);
      }
    });
    const bool last = layer + 1 == linears_.size();
    linear.Run(team_, packed_, {.to = last ? logits : features_.data(), .row = linear.outputs()});
  }
}

void Model::Answer(std::span<const PackedPosition> positions, float* logits) {
  while (!positions.empty()) {
    const auto group = positions.first(std::min<size_t>(positions.size(), kBoardsOfGroup));
    if (config_.IsCnn()) RunPasses(group);
    RunLinears(group, logits);
    positions = positions.subspan(group.size());
    logits += static_cast<int64_t>(group.size()) * config_.num_moves;
  }
}

}  // namespace kibitz::policy
