// The 2048 network: sixteen tiles as tokens, a transformer over them, the mean of its output, and
// heads on that. Letters: B boards, R = 16 B rows, D width, F hidden width, N bins.
//
//   Encoder net(config);
//   InitEncoder(net, seed);                               // Or LoadWeightsInto(net, "model.pt").
//   auto logits = net->forward(tokens);                  // (B, 4, N) or (B, 4)
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/weights/state_dict.h"
#include "students/twenty48/data/net_config.h"

namespace kibitz::twenty48 {

// x / sqrt(mean(x^2) + eps) * weight.
struct NormImpl : torch::nn::Module {
  NormImpl(int64_t width, double epsilon);
  torch::Tensor forward(const torch::Tensor& x);

  double epsilon;
  torch::Tensor weight;  // (D)
};
TORCH_MODULE(Norm);

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(const NetConfig& config);

  torch::nn::Linear wq = nullptr;  // Without biases, as all in a block.
  torch::nn::Linear wk = nullptr;
  torch::nn::Linear wv = nullptr;
  torch::nn::Linear wo = nullptr;
};
TORCH_MODULE(Attention);

struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(const NetConfig& config);

  torch::nn::Linear w_gate = nullptr;  // (F, D)
  torch::nn::Linear w_up = nullptr;    // (F, D)
  torch::nn::Linear w_down = nullptr;  // (D, F)
};
TORCH_MODULE(Mlp);

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(const NetConfig& config, bool attention = true);

  Norm attn_norm = nullptr;  // Nothing without attention, as attn.
  Attention attn = nullptr;
  Norm mlp_norm = nullptr;
  Mlp mlp = nullptr;
};
TORCH_MODULE(Block);

// Which implementation runs: ordinary autograd, or the fused functions of learn (CPU, f32).
enum class Form { kPlain, kFused };

// A block in its three steps, on rows end to end, sixteen a board: attention over the normed rows;
// x + wo(seen); and the MLP with its norm and its residual connection.
struct Attended {
  torch::Tensor x;     // (R, D): the block's input.
  torch::Tensor seen;  // (R, D): what attention gives for it.
};
Attended Attend(BlockImpl& block, const torch::Tensor& x, const NetConfig& config, Form form);
torch::Tensor AddAttended(BlockImpl& block, const Attended& attended, Form form);
torch::Tensor AddMlp(BlockImpl& block, const torch::Tensor& x, const NetConfig& config, Form form);

// The heads on a board's vector, registered in the network they belong to.
struct Heads {
  Heads() = default;
  Heads(const NetConfig& config, torch::nn::Module& net);
  torch::Tensor forward(const torch::Tensor& boards);  // (B, D) to (B, 4, N), or (B, 4).

  torch::nn::ModuleList ev_heads = nullptr;  // Four Linear(D, N), by IndexOf(move) ...
  torch::nn::Linear policy_head = nullptr;   // ... or one Linear(D, 4).
};

struct EncoderImpl : torch::nn::Module {
  explicit EncoderImpl(const NetConfig& config);

  // After the final norm. tokens: (B, 16), int64.
  torch::Tensor Hidden(const torch::Tensor& tokens, Form form);  // (B, 16, D)
  // Logits: (B, 4, N), or (B, 4) of a policy.
  torch::Tensor forward(const torch::Tensor& tokens, Form form = Form::kFused);

  const NetConfig config;
  // Gradient checkpointing: backward computes each block again instead of keeping its activations.
  bool recompute_blocks = false;
  torch::nn::Embedding tok_emb = nullptr;
  torch::nn::Embedding positions = nullptr;  // pos_emb.pos_emb in files.
  torch::nn::ModuleList blocks = nullptr;    // Of Block.
  Norm final_ln = nullptr;
  Heads heads;
};
TORCH_MODULE(Encoder);

// Initializes linear layers as PyTorch does, with three exceptions: a cell's embedding is the sum
// of its row's and its column's, a tile's has a part linear in its rank, and keys start equal to
// queries, so that a head first attends to equal tiles and to cells in line.
void InitEncoder(Encoder& net, uint64_t seed);

// Fills the network from a .pt, a .safetensors or a folder with model.safetensors. Skips a head
// of the other kind and keeps the network's own. Weights of an
// AttentionFree network (attention_free.h) are written into the encoder. Throws Error.
void LoadWeightsInto(Encoder& net, const std::string& path);

// The weights of a file for LoadWeights: with a head of the other kind replaced by the network's
// own.
std::vector<io::NamedTensor> WithFittingHead(const io::StateDict& read,
                                             const torch::nn::Module& net);

// Ranks as a tensor, (B, 16) int64.
torch::Tensor TokenTensor(const std::vector<uint8_t>& tokens);

}  // namespace kibitz::twenty48
