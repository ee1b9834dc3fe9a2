// The policy's networks: a residual CNN and, as a baseline, an MLP. Letters: B positions, C
// channels, I channels of the input, M moves, K window of a convolution.
//
//   PolicyNet net = MakeNet(config);
//   learn::InitWeights(*net, seed);                       // Or LoadWeightsInto(*net, "model.pt").
//   auto logits = net->Logits(inputs);                    // (B, M)
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "students/policy/data/net_config.h"

namespace kibitz::policy {

// How to compute: kPlain as the reference is written, channels before squares, with torch's own
// functions, on any device; kFast with channels innermost and our own convolution (CPU, float32);
// kMixed the same with 3x3 convolutions in bfloat16 (CPU with AVX-512 BF16; other windows as
// kFast). kFast turns into kMixed where Autocast is on.
enum class Form { kPlain, kFast, kMixed };

struct NetModule : torch::nn::Module {
  explicit NetModule(const NetConfig& net_config) : config(net_config) {}

  // inputs: (B, config.form().size()) floats, as WriteInputs writes them.
  virtual torch::Tensor Logits(const torch::Tensor& inputs, Form form = Form::kFast) = 0;  // (B, M)

  const NetConfig config;
  // Gradient checkpointing: backward computes each residual block again instead of keeping its
  // activations.
  bool recompute_blocks = false;
};
using PolicyNet = std::shared_ptr<NetModule>;

// A norm over all numbers of a board, each with a weight of its own.
struct BoardNormImpl : torch::nn::Module {
  // `shape`: (C, 8, 8), or (C * 64) behind the flattening; memory is the same.
  BoardNormImpl(NormKind norm_kind, std::vector<int64_t> shape);
  // x: (B, C, 8, 8) or (B, C * 64), contiguous.
  torch::Tensor Plain(const torch::Tensor& x);
  // x: (B, 64, C), or (B, C * 64) channel by channel; so is the result.
  torch::Tensor Fast(const torch::Tensor& x);
  double epsilon() const;

  const NormKind kind;
  torch::Tensor weight;
  torch::Tensor bias;  // Of a LayerNorm only.
};
TORCH_MODULE(BoardNorm);

// x + gelu(conv2(ln2(gelu(conv1(ln1(x))))))
struct ResidualBlockImpl : torch::nn::Module {
  explicit ResidualBlockImpl(const NetConfig& config);
  // x: (B, C, 8, 8) of the plain form, (B, 64, C) of the fast one, channels padded where the window
  // is 3 (board_block.h), pieces of the mixed one (mixed_block.h); so is the result.
  torch::Tensor Run(const torch::Tensor& x, Form form);

  BoardNorm ln1 = nullptr;
  torch::nn::Conv2d conv1 = nullptr;  // (C, C, K, K)
  BoardNorm ln2 = nullptr;
  torch::nn::Conv2d conv2 = nullptr;
};
TORCH_MODULE(ResidualBlock);

// The last layer of a head of planes: a move's logit is a product with each of its squares, by the
// plane of its kind, and a bias of its own.
struct PlanesHeadImpl : torch::nn::Module {
  explicit PlanesHeadImpl(int64_t channels);
  // x: (B, C * 64), channel by channel -> (B, M)
  torch::Tensor Run(const torch::Tensor& x, Form form);

  torch::Tensor weight;  // (2 planes, C): for the squares moved from, then for those moved to.
  torch::Tensor bias;    // (M)

 private:
  torch::Tensor from_;  // (M) Of each move in (64, 2 planes).
  torch::Tensor to_;    // (M)
};
TORCH_MODULE(PlanesHead);

// gelu(conv(board)), blocks, flattened channel by channel, norm, linear or head of planes.
struct PolicyCnn : NetModule {
  explicit PolicyCnn(const NetConfig& config);
  torch::Tensor Logits(const torch::Tensor& inputs, Form form) override;

  torch::nn::Conv2d input = nullptr;  // layers.0: (C, I, K, K)
  std::vector<ResidualBlock> blocks;  // layers.2, layers.3, ...
  BoardNorm out_ln = nullptr;
  torch::nn::Linear output = nullptr;  // (M, C * 64), with a flat head ...
  PlanesHead planes = nullptr;         // ... or this, under the same name.

 private:
  torch::Tensor RunBlocks(torch::Tensor x, Form form);
};

// linear and relu, num_layers times; linear.
struct PolicyMlp : NetModule {
  explicit PolicyMlp(const NetConfig& config);
  torch::Tensor Logits(const torch::Tensor& inputs, Form form) override;

  std::vector<torch::nn::Linear> linears;  // net.0, net.2, ...
};

PolicyNet MakeNet(const NetConfig& config);

// Fills the network from a .pt, a .safetensors or a folder with model.safetensors. Attack planes
// and blocks that only the network has start with weights of zero, so that it answers alike. Throws
// Error.
void LoadWeightsInto(NetModule& net, const std::string& path);

}  // namespace kibitz::policy
