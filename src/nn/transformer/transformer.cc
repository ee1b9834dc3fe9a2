#include "nn/transformer/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "nn/kernels/amx.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn {
namespace {

// Below this many rows a step between products is not worth waking the team.
constexpr int64_t kFewRows = 8;

void ForRows(Team& team, int64_t rows, const std::function<void(int64_t)>& body) {
  if (rows < kFewRows) {
    for (int64_t row = 0; row < rows; ++row) body(row);
    return;
  }
  constexpr int64_t kPiece = 8;
  team.Run((rows + kPiece - 1) / kPiece, [&](int64_t piece) {
    const int64_t end = std::min(rows, (piece + 1) * kPiece);
    for (int64_t row = piece * kPiece; row < end; ++row) body(row);
  });
}

std::vector<float> Stacked(std::initializer_list<std::span<const float>> parts) {
  std::vector<float> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

void RmsNorm(const float* x, std::span<const float> scale, float* out, float epsilon) {
  const auto width = static_cast<int64_t>(scale.size());
  Lanes squares{};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) squares += Load(x + i) * Load(x + i);
  float sum = Sum(squares);
  for (; i < width; ++i) sum += x[i] * x[i];
  const float factor = 1 / std::sqrt(sum / static_cast<float>(width) + epsilon);
  for (i = 0; i < width; ++i) out[i] = x[i] * factor * scale[static_cast<size_t>(i)];
}

Transformer::Transformer(const TransformerSizes& sizes, Precision precision)
    : sizes_(sizes), precision_(precision) {
  const int64_t pairs = sizes.width / sizes.heads / 2;
  cosine_ = AlignedArray<float>(sizes.positions * pairs);
  sine_ = AlignedArray<float>(sizes.positions * pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * pairs);
    const float frequency = 1 / std::pow(10000.0F, exponent);
    for (int64_t position = 0; position < sizes.positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      cosine_[position * pairs + i] = std::cos(angle);
      sine_[position * pairs + i] = std::sin(angle);
    }
  }
}

void Transformer::AddLayer(const LayerWeights& weights) {
  const int64_t width = sizes_.width;
  const std::vector<float> qkv = Stacked({weights.q, weights.k, weights.v});
  const AlignedArray<float> gate_up =
      InterleaveSwiGlu(weights.w1, weights.w3, sizes_.hidden, width, precision_);
  const auto linear = [&](std::span<const float> weight, int64_t outputs, int64_t inputs) {
    return Linear({.weight = weight, .outputs = outputs, .inputs = inputs}, precision_);
  };
  layers_.push_back({.attention_norm = Stacked({weights.attention_norm}),
                     .mlp_norm = Stacked({weights.mlp_norm}),
                     .qkv = linear(qkv, 3 * width, width),
                     .output = linear(weights.output, width, width),
                     .gate_up = linear({gate_up.data(), static_cast<size_t>(gate_up.size())},
                                       SwiGluOutputs(sizes_.hidden, precision_), width),
                     .down = linear(weights.w2, width, sizes_.hidden)});
}

void Transformer::SetFinalNorm(std::span<const float> scale) { final_norm_ = Stacked({scale}); }

CacheSizes Transformer::CacheFor(int64_t positions) const {
  return {.layers = static_cast<int64_t>(layers_.size()),
          .heads = sizes_.heads,
          .head_width = sizes_.width / sizes_.heads,
          .positions = positions,
          .bf16 = precision_ == Precision::kInt8 && HasAvx512Bf16()};
}

size_t Transformer::memory_bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) {
    for (const Linear* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      bytes += linear->memory_bytes();
    }
  }
  return bytes;
}

double Transformer::ProductFlops(int64_t rows, int64_t wanted) const {
  const auto width = static_cast<double>(sizes_.width);
  const double kv = 2 * width * width;
  const double rest = 2 * width * width + 3 * width * static_cast<double>(sizes_.hidden);
  const auto layers = static_cast<double>(layers_.size());
  return 2 * (static_cast<double>(rows) *
                  (layers * (kv + width * width) + (layers - 1) * (rest - width * width)) +
              static_cast<double>(wanted) * (rest - width * width));
}

struct Transformer::Rows {
  const Attention* attention;
  PassMemory& memory;             // x: the residual stream of `active`.
  std::vector<int64_t> active;    // Rows of the pass still computed.
  std::span<const int64_t> next;  // Those still needed after this layer.
  const std::stop_token& stop;
};

void Transformer::Rotate(float* x, int64_t position) const {
  const int64_t pairs = sizes_.width / sizes_.heads / 2;
  const float* cosine = cosine_.data() + position * pairs;
  const float* sine = sine_.data() + position * pairs;
  for (int64_t head = 0; head < sizes_.heads; ++head, x += 2 * pairs) {
    for (int64_t i = 0; i < pairs; ++i) {
      const float even = x[2 * i];
      const float odd = x[2 * i + 1];
      x[2 * i] = even * cosine[i] - odd * sine[i];
      x[2 * i + 1] = odd * cosine[i] + even * sine[i];
    }
  }
}

void Transformer::Attend(Team& team, int64_t index, Rows& rows) const {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  const Attention& attention = *rows.attention;
  PassMemory& memory = rows.memory;
  float* x = memory.x.data();
  const int64_t width = sizes_.width;
  const auto count = static_cast<int64_t>(rows.active.size());
  memory.packed.Pack(team, count, layer.qkv, [&](int64_t row, float* out) {
    RmsNorm(x + row * width, layer.attention_norm, out);
  });
  layer.qkv.Run(team, memory.packed, {.to = memory.qkv.data(), .row = 3 * width});
  if (rows.stop.stop_requested()) return;
  ForRows(team, count, [&](int64_t row) {
    float* qkv = memory.qkv.data() + row * 3 * width;
    const int64_t of_pass = rows.active[static_cast<size_t>(row)];
    Rotate(qkv, attention.TurnOf(of_pass));
    Rotate(qkv + width, attention.TurnOf(of_pass));
    attention.Remember(index, of_pass, qkv + width, qkv + 2 * width);
  });
  if (rows.next.size() < rows.active.size()) {
    // After the last layer only the wanted rows are needed; the others have stored their keys and
    // values.
    for (size_t i = 0; i < rows.next.size(); ++i) {
      const int64_t from = rows.next[i];
      const auto to = static_cast<int64_t>(i);
      std::copy_n(memory.qkv.data() + from * 3 * width, width, memory.qkv.data() + to * 3 * width);
      std::copy_n(x + from * width, width, x + to * width);
    }
    rows.active.assign(rows.next.begin(), rows.next.end());
  }
  attention.Run(team, {.layer = index,
                       .rows = rows.active,
                       .queries = memory.qkv.data(),
                       .stride = 3 * width,
                       .out = memory.mixed.data()});
  memory.packed.Pack(team, static_cast<int64_t>(rows.active.size()), layer.output,
                     memory.mixed.data(), width);
  layer.output.Run(team, memory.packed, {.to = x, .row = width, .finish = Finish::kAdd});
}

void Transformer::FeedForward(Team& team, const Layer& layer, Rows& rows) const {
  const int64_t width = sizes_.width;
  PassMemory& memory = rows.memory;
  float* x = memory.x.data();
  const int64_t padded = SwiGluOutputs(sizes_.hidden, precision_) / 2;
  const auto count = static_cast<int64_t>(rows.active.size());
  memory.packed.Pack(team, count, layer.gate_up, [&](int64_t row, float* out) {
    RmsNorm(x + row * width, layer.mlp_norm, out);
  });
  layer.gate_up.Run(team, memory.packed,
                    {.to = memory.gated.data(), .row = padded, .finish = Finish::kSwiGlu});
  if (rows.stop.stop_requested()) return;
  memory.packed.Pack(team, count, layer.down, memory.gated.data(), padded);
  layer.down.Run(team, memory.packed, {.to = x, .row = width, .finish = Finish::kAdd});
}

bool Transformer::Run(Team& team, const Pass& pass, PassMemory& memory,
                      const std::stop_token& stop) const {
  const int64_t width = sizes_.width;
  const Attention attention(pass.segments, sizes_.heads, width / sizes_.heads);
  const int64_t count = attention.rows();
  CHECK(!layers_.empty() && !final_norm_.empty() && count > 0);
  CHECK(memory.x.size() >= count * width);
  memory.hidden.Reserve(static_cast<int64_t>(pass.wanted.size()) * width);
  memory.qkv.Reserve(count * 3 * width);
  memory.mixed.Reserve(count * width);
  memory.gated.Reserve(count * SwiGluOutputs(sizes_.hidden, precision_) / 2);
  Rows rows = {.attention = &attention,
               .memory = memory,
               .active = std::vector<int64_t>(static_cast<size_t>(count)),
               .next = {},
               .stop = stop};
  std::iota(rows.active.begin(), rows.active.end(), 0);
  const std::vector<int64_t> all = rows.active;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (stop.stop_requested()) return false;
    rows.next = i + 1 == layers_.size() ? std::span<const int64_t>(pass.wanted) : all;
    Attend(team, static_cast<int64_t>(i), rows);
    if (stop.stop_requested()) return false;
    FeedForward(team, layers_[i], rows);
  }
  for (size_t i = 0; i < pass.wanted.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * width;
    RmsNorm(memory.x.data() + at, final_norm_, memory.hidden.data() + at);
  }
  return !stop.stop_requested();
}

}  // namespace kibitz::nn
