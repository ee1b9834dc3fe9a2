#include "students/twenty48/play/model.h"

#include <algorithm>

#include "base/check.h"
#include "nn/transformer/block_attention.h"
#include "nn/transformer/transformer.h"
#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/data/tuples.h"

namespace kibitz::twenty48 {
namespace {

// Boards per pass, with sixteen rows a board and with one: their rows stay in cache.
constexpr int64_t kBoardsOfPass = 12;
constexpr int64_t kBoardsOfRowPass = 48;

void Append(std::vector<float>& to, const std::vector<float>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

nn::Linear Coarse(std::span<const float> weight, int64_t outputs, int64_t inputs,
                  nn::Precision precision) {
  return nn::Linear({.weight = weight, .outputs = outputs, .inputs = inputs, .coarse = true},
                    precision);
}

}  // namespace

Model::Model(const io::ModelFile& file, const nn::NetworkOptions& options)
    : config_(ConfigOf(file, options.num_heads)), team_(options.threads) {
  const io::StateDict& weights = file.weights;
  if (IsAttentionFree(weights)) {
    attention_free_ = std::make_unique<AttentionFreeModel>(weights, config_);
    return;
  }
  const int64_t d = config_.hidden_size;
  if (IsTupleNet(weights)) {
    tuples_ = std::make_unique<TupleInput>(weights, config_);
  } else {
    tokens_ = weights.Floats("tok_emb.weight", {config_.input_vocab_size, d});
    positions_ = weights.Floats("pos_emb.pos_emb.weight", {config_.max_position_embeddings, d});
  }
  for (int i = 0; i < config_.num_hidden_layers; ++i) ReadLayer(weights, i, options.precision);
  final_norm_ = weights.Floats("final_ln.weight", {d});
  ReadHeads(weights);
}

void Model::ReadLayer(const io::StateDict& weights, int index, nn::Precision precision) {
  const std::string block = fmt::format("blocks.{}.", index);
  const int64_t d = config_.hidden_size;
  const int64_t f = config_.intermediate_size;
  const auto read = [&](const std::string& name, const std::vector<int64_t>& shape) {
    return weights.Floats(block + name, shape);
  };
  const nn::AlignedArray<float> gate_up = nn::InterleaveSwiGlu(
      read("mlp.w_gate.weight", {f, d}), read("mlp.w_up.weight", {f, d}), f, d, precision);
  const std::vector<float> down = read("mlp.w_down.weight", {d, f});
  hidden_columns_ = nn::SwiGluOutputs(f, precision) / 2;
  layers_.push_back({});
  Layer& layer = layers_.back();
  layer.mlp_norm = read("mlp_norm.weight", {d});
  layer.gate_up = Coarse({gate_up.data(), static_cast<size_t>(gate_up.size())}, 2 * hidden_columns_,
                         d, precision);
  layer.down = Coarse(down, d, f, precision);
  if (!tuples_ || tuples_->rows() > 1) ReadAttention(weights, index, precision);
}

void Model::ReadAttention(const io::StateDict& weights, int index, nn::Precision precision) {
  const int64_t d = config_.hidden_size;
  const int64_t kv = int64_t{config_.kv_heads()} * config_.head_width();
  const auto read = [&](const std::string& name, const std::vector<int64_t>& shape) {
    return weights.Floats(fmt::format("blocks.{}.{}", index, name), shape);
  };
  std::vector<float> qkv = read("attn.wq.weight", {d, d});
  Append(qkv, read("attn.wk.weight", {kv, d}));
  Append(qkv, read("attn.wv.weight", {kv, d}));
  Layer& layer = layers_.back();
  layer.attention_norm = read("attn_norm.weight", {d});
  layer.output = Coarse(read("attn.wo.weight", {d, d}), d, d, precision);
  if (index == 0 && !tuples_) {
    TabulateFirst(qkv);
  } else {
    layer.qkv = Coarse(qkv, d + 2 * kv, d, precision);
  }
}

void Model::TabulateFirst(std::span<const float> qkv_weight) {
  const int64_t d = config_.hidden_size;
  const int64_t outputs = static_cast<int64_t>(qkv_weight.size()) / d;
  const int64_t rows = int64_t{config_.input_vocab_size} * kCells;
  const nn::Linear linear({.weight = qkv_weight, .outputs = outputs, .inputs = d},
                          nn::Precision::kF32);
  nn::PackedRows packed;
  packed.Pack(team_, rows, linear, [&](int64_t row, float* out) {
    std::vector<float> x(static_cast<size_t>(d));
    for (int64_t i = 0; i < d; ++i) {
      x[static_cast<size_t>(i)] = tokens_[static_cast<size_t>(row / kCells * d + i)] +
                                  positions_[static_cast<size_t>(row % kCells * d + i)];
    }
    nn::RmsNorm(x.data(), layers_.front().attention_norm, out,
                static_cast<float>(config_.layer_norm_eps));
  });
  first_ = nn::AlignedArray<float>(rows * outputs);
  linear.Run(team_, packed, {.to = first_.data(), .row = outputs});
}

void Model::ReadHeads(const io::StateDict& weights) {
  const int64_t d = config_.hidden_size;
  std::vector<float> weight;
  std::vector<float> bias;
  if (config_.head_type == HeadType::kActionPolicy) {
    weight = weights.Floats("policy_head.weight", {4, d});
    bias = weights.Floats("policy_head.bias", {4});
  } else {
    for (int move = 0; move < 4; ++move) {
      const std::string head = fmt::format("ev_heads.{}.", move);
      Append(weight, weights.Floats(head + "weight", {config_.bins(), d}));
      Append(bias, weights.Floats(head + "bias", {config_.bins()}));
    }
  }
  const auto answers = static_cast<int64_t>(bias.size());
  heads_ = nn::Linear({.weight = weight, .outputs = answers, .inputs = d, .bias = bias},
                      nn::Precision::kF32);
}

int64_t Model::answers() const {
  return attention_free_ ? attention_free_->answers() : heads_.outputs();
}

size_t Model::memory_bytes() const {
  if (attention_free_) return attention_free_->memory_bytes();
  size_t bytes = heads_.memory_bytes() + static_cast<size_t>(first_.size()) * sizeof(float);
  if (tuples_) bytes += tuples_->memory_bytes();
  for (const Layer& layer : layers_) {
    for (const nn::Linear* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      bytes += linear->memory_bytes();
    }
  }
  return bytes;
}

void Model::ProjectQkv(const Layer& layer, int64_t rows, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  space.packed.Pack(space.alone, rows, layer.qkv, [&](int64_t i, float* out) {
    nn::RmsNorm(space.x.data() + i * d, layer.attention_norm, out,
                static_cast<float>(config_.layer_norm_eps));
  });
  layer.qkv.Run(space.alone, space.packed, {.to = space.qkv.data(), .row = layer.qkv.outputs()});
}

void Model::Attend(int64_t boards, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  const int64_t e = config_.head_width();
  const int64_t kv = config_.kv_heads() * e;
  const int64_t row = d + 2 * kv;
  std::vector<float> transposed(static_cast<size_t>(e * kCells));
  std::array<float, size_t{kCells} * kCells> shares;
  for (int64_t board = 0; board < boards; ++board) {
    const float* qkv = space.qkv.data() + board * kCells * row;
    for (int64_t kv_head = 0; kv_head < config_.kv_heads(); ++kv_head) {
      const float* k = qkv + d + kv_head * e;
      nn::TransposeInto(k, row, transposed.data(), kCells, e);
      for (int64_t head = kv_head; head < config_.num_attention_heads; head += config_.kv_heads()) {
        nn::AttendBlock({.q = qkv + head * e,
                         .q_row = row,
                         .k_transposed = transposed.data(),
                         .v = k + kv,
                         .v_row = row,
                         .out = space.mixed.data() + board * kCells * d + head * e,
                         .out_row = d},
                        kCells, e, shares.data());
      }
    }
  }
}

void Model::AddAttended(const Layer& layer, int64_t rows, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  space.packed.Pack(space.alone, rows, layer.output, [&](int64_t i, float* out) {
    std::copy_n(space.mixed.data() + i * d, d, out);
  });
  layer.output.Run(space.alone, space.packed,
                   {.to = space.x.data(), .row = d, .finish = nn::Finish::kAdd});
}

void Model::FeedForward(const Layer& layer, int64_t rows, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  const auto epsilon = static_cast<float>(config_.layer_norm_eps);
  space.packed.Pack(space.alone, rows, layer.gate_up, [&](int64_t i, float* out) {
    nn::RmsNorm(space.x.data() + i * d, layer.mlp_norm, out, epsilon);
  });
  layer.gate_up.Run(
      space.alone, space.packed,
      {.to = space.hidden.data(), .row = hidden_columns_, .finish = nn::Finish::kSwiGlu});
  space.packed.Pack(space.alone, rows, layer.down, [&](int64_t i, float* out) {
    std::copy_n(space.hidden.data() + i * hidden_columns_, config_.intermediate_size, out);
  });
  layer.down.Run(space.alone, space.packed,
                 {.to = space.x.data(), .row = d, .finish = nn::Finish::kAdd});
}

void Model::KeepBoardRows(int64_t boards, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  for (int64_t board = 1; board < boards; ++board) {
    std::copy_n(space.x.data() + board * kTupleRows * d, d, space.x.data() + board * d);
    std::copy_n(space.mixed.data() + board * kTupleRows * d, d, space.mixed.data() + board * d);
  }
}

void Model::Begin(std::span<const Board> boards, Workspace& space) const {
  if (!tuples_) return BeginTiles(boards, space);
  for (size_t i = 0; i < boards.size(); ++i) {
    tuples_->Fill(boards[i],
                  space.x.data() + static_cast<int64_t>(i) * tuples_->rows() * config_.hidden_size);
  }
}

void Model::BeginTiles(std::span<const Board> boards, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  const int64_t outputs = d + 2 * config_.kv_heads() * config_.head_width();
  for (int64_t row = 0; row < std::ssize(boards) * kCells; ++row) {
    const int64_t cell = row % kCells;
    const int rank =
        std::min(boards[static_cast<size_t>(row / kCells)].Rank(static_cast<int>(cell)), 16);
    const float* token = tokens_.data() + rank * d;
    const float* position = positions_.data() + cell * d;
    for (int64_t i = 0; i < d; ++i) space.x[row * d + i] = token[i] + position[i];
    std::copy_n(first_.data() + (rank * kCells + cell) * outputs, outputs,
                space.qkv.data() + row * outputs);
  }
}

void Model::RunLayers(std::span<const Board> boards, Workspace& space) const {
  const int64_t d = config_.hidden_size;
  const int64_t count = std::ssize(boards);
  const bool attention = !tuples_ || tuples_->rows() > 1;
  int64_t rows = count * (attention ? kCells : 1);
  space.x.Reserve(rows * d);
  space.qkv.Reserve(rows * (d + 2 * config_.kv_heads() * config_.head_width()));
  space.mixed.Reserve(rows * d);
  space.hidden.Reserve(rows * hidden_columns_);
  Begin(boards, space);
  for (const Layer& layer : layers_) {
    if (attention) {
      if (tuples_ || &layer != &layers_.front()) ProjectQkv(layer, rows, space);
      Attend(count, space);
      if (tuples_ && &layer == &layers_.back()) {
        KeepBoardRows(count, space);
        rows = count;
      }
      AddAttended(layer, rows, space);
    }
    FeedForward(layer, rows, space);
  }
}

void Model::ForChunks(std::span<const Board> boards,
                      const std::function<void(std::span<const Board>, int64_t, Workspace&)>& run) {
  const int64_t size = tuples_ && tuples_->rows() == 1 ? kBoardsOfRowPass : kBoardsOfPass;
  const int64_t chunks = (std::ssize(boards) + size - 1) / size;
  team_.Run(chunks, [&](int64_t chunk) {
    const auto begin = static_cast<size_t>(chunk * size);
    const size_t count = std::min<size_t>(static_cast<size_t>(size), boards.size() - begin);
    workspaces_.Borrow([&](Workspace& space) {
      run(boards.subspan(begin, count), static_cast<int64_t>(begin), space);
    });
  });
}

void Model::Hidden(std::span<const Board> boards, float* hidden) {
  CHECK(!attention_free_ && !tuples_);
  const int64_t d = config_.hidden_size;
  ForChunks(boards, [&](std::span<const Board> some, int64_t begin, Workspace& space) {
    RunLayers(some, space);
    for (int64_t row = 0; row < std::ssize(some) * kCells; ++row) {
      nn::RmsNorm(space.x.data() + row * d, final_norm_, hidden + (begin * kCells + row) * d,
                  static_cast<float>(config_.layer_norm_eps));
    }
  });
}

void Model::Pool(const Workspace& space, int64_t board, float* out) const {
  const int64_t d = config_.hidden_size;
  const auto epsilon = static_cast<float>(config_.layer_norm_eps);
  if (tuples_) return nn::RmsNorm(space.x.data() + board * d, final_norm_, out, epsilon);
  std::vector<float> normed(static_cast<size_t>(d));
  std::fill_n(out, d, 0.0F);
  for (int64_t cell = 0; cell < kCells; ++cell) {
    nn::RmsNorm(space.x.data() + (board * kCells + cell) * d, final_norm_, normed.data(), epsilon);
    for (int64_t i = 0; i < d; ++i) out[i] += normed[static_cast<size_t>(i)] / kCells;
  }
}

void Model::Answer(std::span<const Board> boards, float* logits) {
  if (attention_free_) return attention_free_->Answer(team_, boards, logits);
  ForChunks(boards, [&](std::span<const Board> some, int64_t begin, Workspace& space) {
    RunLayers(some, space);
    space.packed.Pack(space.alone, std::ssize(some), heads_,
                      [&](int64_t board, float* out) { Pool(space, board, out); });
    heads_.Run(space.alone, space.packed, {.to = logits + begin * answers(), .row = answers()});
  });
}

}  // namespace kibitz::twenty48
