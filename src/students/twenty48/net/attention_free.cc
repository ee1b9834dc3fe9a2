#include "students/twenty48/net/attention_free.h"

#include <cmath>

#include "base/check.h"
#include "learn/weights.h"
#include "students/twenty48/data/attention_free_layout.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;
using torch::indexing::Slice;

constexpr int64_t kRanks = AttentionFreeLayout::kRanks;
constexpr int64_t kCells = AttentionFreeLayout::kCells;
constexpr int64_t kTileFrom = AttentionFreeLayout::kTileFrom;
constexpr double kMark = AttentionFreeLayout::kMark;
constexpr double kLength = AttentionFreeLayout::kLength;
constexpr double kFixedSquares = AttentionFreeLayout::kFixedSquares;
constexpr double kOpen = 4;  // Input of a gate of the first layer in its own cell.

torch::nn::Linear Matrix(int64_t from, int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

torch::nn::LinearImpl& At(torch::nn::ModuleList& list, size_t index) {
  return *list[index]->as<torch::nn::Linear>();
}

}  // namespace

AttentionFreeImpl::AttentionFreeImpl(const NetConfig& config) : config(config) {
  CheckAttentionFree(config);
  const int64_t g = AttentionFreeWidth(config);
  const int64_t answers = config.head_type == HeadType::kBinnedEv ? 4 * config.bins() : 4;
  table = register_module("table", torch::nn::Embedding(kCells * kRanks, g));
  mix = register_module("mix", Matrix(g, g));
  gates = register_module("gates", torch::nn::ModuleList());
  ups = register_module("ups", torch::nn::ModuleList());
  downs = register_module("downs", torch::nn::ModuleList());
  for (int i = 1; i < config.num_hidden_layers; ++i) {
    gates->push_back(Matrix(g, config.intermediate_size));
    ups->push_back(Matrix(g, config.intermediate_size));
    downs->push_back(Matrix(config.intermediate_size, g));
  }
  head = register_module("head", torch::nn::Linear(g, answers));
}

Tensor AttentionFreeImpl::Normed(const Tensor& x) const {
  const Tensor squares = x.square().sum(1, true) + kFixedSquares;  // (B, 1)
  return x * torch::rsqrt(squares / config.hidden_size + config.layer_norm_eps);
}

Tensor AttentionFreeImpl::forward(const Tensor& tokens) {
  const Tensor& rows = table->weight;
  const Tensor tiles = rows * (kLength / rows.norm(2, 1, true).clamp_min(1e-6));   // (272, G)
  const Tensor places = tokens + kRanks * torch::arange(kCells, tokens.device());  // (B, 16)
  const Tensor seen = torch::nn::functional::embedding_bag(
      places, tiles, torch::nn::functional::EmbeddingBagFuncOptions().mode(torch::kMean));
  const double factor = 1 / std::sqrt(kFixedSquares / config.hidden_size + config.layer_norm_eps);
  Tensor x = mix(seen * factor);  // (B, G)
  for (size_t i = 0; i < gates->size(); ++i) {
    const Tensor y = Normed(x);
    const Tensor hidden = torch::silu(At(gates, i).forward(y)) * At(ups, i).forward(y);  // (B, F)
    x = x + At(downs, i).forward(hidden);
  }
  const Tensor answers = head(Normed(x));
  if (config.head_type == HeadType::kActionPolicy) return answers;
  return answers.reshape({-1, 4, config.bins()});
}

void InitAttentionFree(AttentionFree& small, uint64_t seed) {
  learn::InitWeights(*small, seed);
  const torch::NoGradGuard no_grad;
  // Uniform draws within 1 / sqrt(inputs) get that standard deviation. The factor 3 makes up for
  // the mean over the cells, which is small.
  const double wider = std::sqrt(3.0);
  small->mix->weight.mul_(3 * wider);
  for (const auto& list : {small->gates, small->ups, small->downs}) {
    for (const auto& matrix : *list) matrix->as<torch::nn::Linear>()->weight.mul_(wider);
  }
}

namespace {

// A tile's row: its rank one-hot and its cell one-hot.
void WriteEmbeddings(Encoder& net) {
  net->tok_emb->weight.zero_();
  net->positions->weight.zero_();
  for (int64_t rank = 0; rank < kRanks; ++rank) net->tok_emb->weight[rank][rank] = kMark;
  for (int64_t cell = 0; cell < kCells; ++cell) {
    net->positions->weight[cell][kRanks + cell] = kMark;
  }
}

// The first MLP is a lookup: one hidden unit for each rank in each cell, gated on in that cell
// only.
void WriteTable(AttentionFreeImpl& small, MlpImpl& mlp) {
  const NetConfig& config = small.config;
  const int64_t g = AttentionFreeWidth(config);
  const int64_t units = config.intermediate_size / kCells;
  const double mark = kMark / std::sqrt(2 * kMark * kMark / config.hidden_size +
                                        config.layer_norm_eps);  // After the norm.
  const double opened = kOpen / (1 + std::exp(-kOpen));          // silu
  const Tensor& rows = small.table->weight;
  const Tensor tiles = rows * (kLength / rows.norm(2, 1, true).clamp_min(1e-6));  // (272, G)
  for (int64_t cell = 0; cell < kCells; ++cell) {
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const int64_t unit = cell * units + rank;
      mlp.w_gate->weight[unit][kRanks + cell] = kOpen / mark;
      mlp.w_up->weight[unit][rank] = 1 / mark;
      mlp.w_down->weight.index_put_({Slice(kTileFrom, kTileFrom + g), unit},
                                    tiles[cell * kRanks + rank] / opened);
    }
  }
}

// The second attention takes the mean over the cells: queries of zero attend uniformly.
void WriteMean(AttentionFreeImpl& small, AttentionImpl& attention) {
  const int64_t g = AttentionFreeWidth(small.config);
  attention.wv->weight.zero_();
  for (int64_t i = 0; i < g; ++i) attention.wv->weight[i][kTileFrom + i] = 1;
  attention.wo->weight.index_put_({Slice(kTileFrom + g, kTileFrom + 2 * g), Slice(0, g)},
                                  small.mix->weight);
}

}  // namespace

void WriteInto(AttentionFreeImpl& small, Encoder& net) {
  const torch::NoGradGuard no_grad;
  const NetConfig& config = small.config;
  const int64_t g = AttentionFreeWidth(config);
  const Slice board(kTileFrom + g,
                    kTileFrom + 2 * g);  // The board's vector in a row.
  WriteEmbeddings(net);
  for (size_t i = 0; i < net->blocks->size(); ++i) {
    auto* block = net->blocks[i]->as<BlockImpl>();
    block->attn_norm->weight.fill_(1);
    block->mlp_norm->weight.fill_(1);
    block->attn->wq->weight.zero_();
    block->attn->wo->weight.zero_();
    MlpImpl& mlp = *block->mlp;
    for (const auto& matrix : {mlp.w_gate, mlp.w_up, mlp.w_down}) matrix->weight.zero_();
    if (i == 0) {
      WriteTable(small, mlp);
      continue;
    }
    if (i == 1) WriteMean(small, *block->attn);
    mlp.w_gate->weight.index_put_({Slice(), board}, At(small.gates, i - 1).weight);
    mlp.w_up->weight.index_put_({Slice(), board}, At(small.ups, i - 1).weight);
    mlp.w_down->weight.index_put_({board, Slice()}, At(small.downs, i - 1).weight);
  }
  net->final_ln->weight.fill_(1);
  const bool policy = config.head_type == HeadType::kActionPolicy;
  const int64_t answers = policy ? 4 : config.bins();
  for (int64_t i = 0; i < (policy ? 1 : 4); ++i) {
    auto* head = policy ? net->heads.policy_head.get()
                        : net->heads.ev_heads[static_cast<size_t>(i)]->as<torch::nn::Linear>();
    head->weight.zero_();
    head->weight.index_put_({Slice(), board}, small.head->weight.narrow(0, i * answers, answers));
    head->bias.copy_(small.head->bias.narrow(0, i * answers, answers));
  }
}

}  // namespace kibitz::twenty48
