#include "students/twenty48/net/encoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/weights/model_file.h"
#include "learn/block_attention.h"
#include "learn/fused.h"
#include "learn/recompute.h"
#include "learn/weights.h"
#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/net/attention_free.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;

torch::nn::Linear Matrix(int64_t from, int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

learn::BlockShape ShapeOf(const NetConfig& config) {
  return {.rows = 16, .heads = config.num_attention_heads, .kv_heads = config.kv_heads()};
}

bool IsHead(const std::string& name) {
  return name.starts_with("ev_heads.") || name.starts_with("policy_head.");
}

}  // namespace

NormImpl::NormImpl(int64_t width, double epsilon)
    : epsilon(epsilon), weight(register_parameter("weight", torch::ones({width}))) {}

Tensor NormImpl::forward(const Tensor& x) {
  return x * torch::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

AttentionImpl::AttentionImpl(const NetConfig& config) {
  const int64_t d = config.hidden_size;
  const int64_t kv = int64_t{config.kv_heads()} * config.head_width();
  wq = register_module("wq", Matrix(d, d));
  wk = register_module("wk", Matrix(d, kv));
  wv = register_module("wv", Matrix(d, kv));
  wo = register_module("wo", Matrix(d, d));
}

MlpImpl::MlpImpl(const NetConfig& config) {
  w_gate = register_module("w_gate", Matrix(config.hidden_size, config.intermediate_size));
  w_up = register_module("w_up", Matrix(config.hidden_size, config.intermediate_size));
  w_down = register_module("w_down", Matrix(config.intermediate_size, config.hidden_size));
}

BlockImpl::BlockImpl(const NetConfig& config, bool attention) {
  if (attention) {
    attn_norm = register_module("attn_norm", Norm(config.hidden_size, config.layer_norm_eps));
    attn = register_module("attn", Attention(config));
  }
  mlp_norm = register_module("mlp_norm", Norm(config.hidden_size, config.layer_norm_eps));
  mlp = register_module("mlp", Mlp(config));
}

EncoderImpl::EncoderImpl(const NetConfig& config) : config(config) {
  CheckConfig(config);
  const int64_t d = config.hidden_size;
  tok_emb = register_module("tok_emb", torch::nn::Embedding(config.input_vocab_size, d));
  positions = torch::nn::Embedding(config.max_position_embeddings, d);
  auto holder = std::make_shared<torch::nn::Module>("PositionEmbedding");
  holder->register_module("pos_emb", positions);
  register_module("pos_emb", holder);
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (int i = 0; i < config.num_hidden_layers; ++i) blocks->push_back(Block(config));
  final_ln = register_module("final_ln", Norm(d, config.layer_norm_eps));
  heads = Heads(config, *this);
}

Attended Attend(BlockImpl& block, const Tensor& x, const NetConfig& config, Form form) {
  Attention& attn = block.attn;
  if (form == Form::kPlain) {
    const Tensor a = block.attn_norm->forward(x);
    return {x, learn::PlainBlockAttention(attn->wq(a), attn->wk(a), attn->wv(a), ShapeOf(config))};
  }
  const auto parts = learn::NormProject(x, block.attn_norm->weight,
                                        {attn->wq->weight, attn->wk->weight, attn->wv->weight},
                                        config.layer_norm_eps);
  return {parts.x, learn::BlockAttention(parts.outputs[0], parts.outputs[1], parts.outputs[2],
                                         ShapeOf(config))};
}

Tensor AddAttended(BlockImpl& block, const Attended& attended, Form form) {
  if (form == Form::kPlain) return attended.x + block.attn->wo(attended.seen);
  return learn::AddProjected(attended.x, attended.seen, block.attn->wo->weight);
}

Tensor AddMlp(BlockImpl& block, const Tensor& x, const NetConfig& config, Form form) {
  Mlp& mlp = block.mlp;
  if (form == Form::kPlain) {
    const Tensor b = block.mlp_norm->forward(x);
    return x + mlp->w_down(torch::silu(mlp->w_gate(b)) * mlp->w_up(b));
  }
  return learn::FusedMlp(x,
                         {.scale = block.mlp_norm->weight,
                          .gate = mlp->w_gate->weight,
                          .up = mlp->w_up->weight,
                          .down = mlp->w_down->weight},
                         config.layer_norm_eps);
}

Heads::Heads(const NetConfig& config, torch::nn::Module& net) {
  const int64_t d = config.hidden_size;
  if (config.head_type == HeadType::kActionPolicy) {
    policy_head = net.register_module("policy_head", torch::nn::Linear(d, 4));
    return;
  }
  ev_heads = net.register_module("ev_heads", torch::nn::ModuleList());
  for (int i = 0; i < 4; ++i) ev_heads->push_back(torch::nn::Linear(d, config.bins()));
}

Tensor Heads::forward(const Tensor& boards) {
  if (policy_head) return policy_head(boards);
  std::vector<Tensor> answers;
  for (const auto& head : *ev_heads) {
    answers.push_back(head->as<torch::nn::Linear>()->forward(boards));
  }
  return torch::stack(answers, 1);  // (B, 4, N)
}

Tensor EncoderImpl::Hidden(const Tensor& tokens, Form form) {
  const int64_t boards = tokens.size(0);
  const int64_t d = config.hidden_size;
  Tensor x = (tok_emb(tokens) + positions->weight).reshape({boards * 16, d});  // (R, D)
  for (const auto& module : *blocks) {
    Block block(std::dynamic_pointer_cast<BlockImpl>(module));
    auto run = [this, block, form](const Tensor& in) mutable {
      return AddMlp(*block, AddAttended(*block, Attend(*block, in, config, form), form), config,
                    form);
    };
    x = recompute_blocks ? learn::Recomputed(x, block->parameters(), run) : run(x);
  }
  x = form == Form::kFused ? learn::FusedRmsNorm(x, final_ln->weight, config.layer_norm_eps)
                           : final_ln->forward(x);
  return x.reshape({boards, 16, d});
}

Tensor EncoderImpl::forward(const Tensor& tokens, Form form) {
  return heads.forward(Hidden(tokens, form).mean(1));
}

void InitEncoder(Encoder& net, uint64_t seed) {
  const NetConfig& config = net->config;
  const int64_t d = config.hidden_size;
  learn::InitWeights(*net, seed);
  const torch::NoGradGuard no_grad;
  const auto drawn = [&](int64_t rows, const std::string& name) {
    auto tensor = torch::empty({rows, d});
    learn::FillNormal(tensor, seed, name);
    return tensor;
  };
  const Tensor lines =
      drawn(4, "rows").repeat_interleave(4, 0) + drawn(4, "columns").repeat({4, 1});
  net->positions->weight.copy_(0.5 * lines);
  const Tensor ranks = torch::arange(config.input_vocab_size).unsqueeze(1).to(torch::kFloat32);
  net->tok_emb->weight.mul_(0.5);
  net->tok_emb->weight.add_((ranks / 8 - 1) * drawn(1, "rank"));
  const int64_t kv = int64_t{config.kv_heads()} * config.head_width();
  for (const auto& module : *net->blocks) {
    auto* block = module->as<BlockImpl>();
    block->attn->wk->weight.copy_(block->attn->wq->weight.narrow(0, 0, kv));
  }
}

void LoadWeightsInto(Encoder& net, const std::string& path) {
  const io::StateDict read = io::ReadModel(path).weights;
  if (IsAttentionFree(read)) {
    AttentionFree small(net->config);
    learn::LoadWeights(*small, read, read.place());
    return WriteInto(*small, net);
  }
  learn::LoadWeights(*net, io::StateDict(WithFittingHead(read, *net), read.place()), read.place());
}

std::vector<io::NamedTensor> WithFittingHead(const io::StateDict& read,
                                             const torch::nn::Module& net) {
  std::vector<io::NamedTensor> weights;
  bool foreign_head = false;
  const std::vector<io::NamedTensor> own = learn::WeightsOf(net);
  for (const io::NamedTensor& tensor : read.tensors()) {
    const auto same = [&](const io::NamedTensor& mine) {
      return mine.name == tensor.name && mine.tensor.shape == tensor.tensor.shape;
    };
    if (IsHead(tensor.name) && std::none_of(own.begin(), own.end(), same)) {
      foreign_head = true;
    } else {
      weights.push_back(tensor);
    }
  }
  if (foreign_head) {
    LogInfo("{}: its head is of another kind; keeping a new one", read.place());
    std::erase_if(weights, [](const io::NamedTensor& tensor) { return IsHead(tensor.name); });
    for (const io::NamedTensor& mine : own) {
      if (IsHead(mine.name)) weights.push_back(mine);
    }
  }
  return weights;
}

Tensor TokenTensor(const std::vector<uint8_t>& tokens) {
  const auto bytes =
      torch::from_blob(const_cast<uint8_t*>(tokens.data()),
                       {static_cast<int64_t>(tokens.size()) / 16, 16}, torch::kUInt8);
  return bytes.to(torch::kInt64);
}

}  // namespace kibitz::twenty48
