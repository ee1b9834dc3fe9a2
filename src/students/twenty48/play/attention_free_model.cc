#include "students/twenty48/play/attention_free_model.h"

#include <algorithm>
#include <cmath>

#include "students/twenty48/data/attention_free_layout.h"

namespace kibitz::twenty48 {
namespace {

constexpr int64_t kBoardsOfPass = 48;  // Boards per pass.

// The table with rows normalized to one length, divided by 16 for the mean over the board, times
// `mix`: (16 * 17, G).
std::vector<float> MixedTiles(const std::vector<float>& table, const std::vector<float>& mix,
                              int64_t g, double norm) {
  std::vector<float> mixed(table.size());
  for (int64_t row = 0; row < std::ssize(table) / g; ++row) {
    const float* tile = table.data() + row * g;
    double squares = 0;
    for (int64_t i = 0; i < g; ++i) squares += double{tile[i]} * tile[i];
    const double factor = AttentionFreeLayout::kLength / std::max(std::sqrt(squares), 1e-6) /
                          AttentionFreeLayout::kCells * norm;
    for (int64_t out = 0; out < g; ++out) {
      double sum = 0;
      for (int64_t i = 0; i < g; ++i) {
        sum += double{mix[static_cast<size_t>(out * g + i)]} * tile[i];
      }
      mixed[static_cast<size_t>(row * g + out)] = static_cast<float>(sum * factor);
    }
  }
  return mixed;
}

nn::Linear ReadLinear(const io::StateDict& weights, const std::string& name, int64_t outputs,
                      int64_t inputs) {
  const std::vector<float> weight = weights.Floats(name + ".weight", {outputs, inputs});
  return nn::Linear({.weight = weight, .outputs = outputs, .inputs = inputs}, nn::Precision::kF32);
}

}  // namespace

AttentionFreeModel::AttentionFreeModel(const io::StateDict& weights, const NetConfig& config)
    : width_(AttentionFreeWidth(config)),
      hidden_(config.intermediate_size),
      places_(config.hidden_size),
      epsilon_(config.layer_norm_eps) {
  CheckAttentionFree(config);
  const int64_t g = width_;
  const double norm = 1 / std::sqrt(AttentionFreeLayout::kFixedSquares / places_ + epsilon_);
  begin_ =
      MixedTiles(weights.Floats("table.weight",
                                {AttentionFreeLayout::kCells * AttentionFreeLayout::kRanks, g}),
                 weights.Floats("mix.weight", {g, g}), g, norm);
  for (int i = 0; i + 1 < config.num_hidden_layers; ++i) {
    layers_.push_back({.gate = ReadLinear(weights, fmt::format("gates.{}", i), hidden_, g),
                       .up = ReadLinear(weights, fmt::format("ups.{}", i), hidden_, g),
                       .down = ReadLinear(weights, fmt::format("downs.{}", i), g, hidden_)});
  }
  const int64_t answers = config.head_type == HeadType::kBinnedEv ? 4 * config.bins() : 4;
  const std::vector<float> weight = weights.Floats("head.weight", {answers, g});
  const std::vector<float> bias = weights.Floats("head.bias", {answers});
  head_ = nn::Linear({.weight = weight, .outputs = answers, .inputs = g, .bias = bias},
                     nn::Precision::kF32);
}

size_t AttentionFreeModel::memory_bytes() const {
  size_t bytes = head_.memory_bytes() + begin_.size() * sizeof(float);
  for (const Layer& layer : layers_) {
    bytes += layer.gate.memory_bytes() + layer.up.memory_bytes() + layer.down.memory_bytes();
  }
  return bytes;
}

void AttentionFreeModel::Norm(const float* x, float* out) const {
  double squares = AttentionFreeLayout::kFixedSquares;
  for (int64_t i = 0; i < width_; ++i) squares += double{x[i]} * x[i];
  const auto factor = static_cast<float>(1 / std::sqrt(squares / places_ + epsilon_));
  for (int64_t i = 0; i < width_; ++i) out[i] = x[i] * factor;
}

void AttentionFreeModel::AnswerSome(std::span<const Board> boards, float* logits) const {
  const int64_t g = width_;
  const int64_t rows = std::ssize(boards);
  nn::Team alone(1);
  nn::PackedRows packed;
  std::vector<float> x(static_cast<size_t>(rows * g), 0.0F);
  std::vector<float> gate(static_cast<size_t>(rows * hidden_));
  std::vector<float> up(gate.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int cell = 0; cell < AttentionFreeLayout::kCells; ++cell) {
      const int rank = std::min<int>(boards[static_cast<size_t>(row)].Rank(cell),
                                     static_cast<int>(AttentionFreeLayout::kRanks) - 1);
      const float* tile = begin_.data() + (cell * AttentionFreeLayout::kRanks + rank) * g;
      float* to = x.data() + row * g;
      for (int64_t i = 0; i < g; ++i) to[i] += tile[i];
    }
  }
  const auto normed = [&](int64_t row, float* out) { Norm(x.data() + row * g, out); };
  for (const Layer& layer : layers_) {
    packed.Pack(alone, rows, layer.gate, normed);
    layer.gate.Run(alone, packed, {.to = gate.data(), .row = hidden_});
    layer.up.Run(alone, packed, {.to = up.data(), .row = hidden_});
    packed.Pack(alone, rows, layer.down, [&](int64_t row, float* out) {
      for (int64_t i = 0; i < hidden_; ++i) {
        const float value = gate[static_cast<size_t>(row * hidden_ + i)];
        out[i] = value / (1 + std::exp(-value)) * up[static_cast<size_t>(row * hidden_ + i)];
      }
    });
    layer.down.Run(alone, packed, {.to = x.data(), .row = g, .finish = nn::Finish::kAdd});
  }
  packed.Pack(alone, rows, head_, normed);
  head_.Run(alone, packed, {.to = logits, .row = answers()});
}

void AttentionFreeModel::Answer(nn::Team& team, std::span<const Board> boards,
                                float* logits) const {
  const int64_t chunks = (std::ssize(boards) + kBoardsOfPass - 1) / kBoardsOfPass;
  team.Run(chunks, [&](int64_t chunk) {
    const auto begin = static_cast<size_t>(chunk * kBoardsOfPass);
    const size_t count = std::min<size_t>(kBoardsOfPass, boards.size() - begin);
    AnswerSome(boards.subspan(begin, count), logits + static_cast<int64_t>(begin) * answers());
  });
}

}  // namespace kibitz::twenty48
