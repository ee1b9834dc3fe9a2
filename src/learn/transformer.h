// The parts of a transformer in their plain form: tensors with a batch axis, dense masks, ordinary
// autograd. Tests compare the fast code with them. Letters: B rows, S positions of a
// row, D width, H heads, E = D / H, F hidden width of the MLP.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace kibitz::learn {

// x / sqrt(mean(x^2) + 1e-6) * scale, over the last axis.
struct RmsNormImpl : torch::nn::Module {
  explicit RmsNormImpl(int64_t width);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor scale;  // (D)
};
TORCH_MODULE(RmsNorm);
inline constexpr double kRmsEpsilon = 1e-6;

// Angles of rotary position encoding: position * 10000^(-2i / E) for the pair of neighbours
// (2i, 2i + 1).
struct RotaryTable {
  torch::Tensor cosine;  // (positions, E / 2)
  torch::Tensor sine;    // (positions, E / 2)
};
RotaryTable MakeRotaryTable(int64_t positions, int64_t head_width);
// x: (B, S, H, E), at positions 0 to S - 1.
torch::Tensor Rotate(const torch::Tensor& x, const RotaryTable& table);

struct SelfAttentionImpl : torch::nn::Module {
  SelfAttentionImpl(int64_t width, int64_t heads);
  // x: (B, S, D); bias: (B or 1, 1, S, S), added to the scores: 0, or -infinity where not seen.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& bias,
                        const RotaryTable& rotary);

  int64_t heads;
  torch::nn::Linear q_proj = nullptr;  // All four (D, D), without bias.
  torch::nn::Linear k_proj = nullptr;
  torch::nn::Linear v_proj = nullptr;
  torch::nn::Linear output_proj = nullptr;
};
TORCH_MODULE(SelfAttention);

// w2(silu(w1 x) * w3 x), without biases.
struct SwiGluImpl : torch::nn::Module {
  SwiGluImpl(int64_t width, int64_t hidden);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Linear w1 = nullptr;  // (F, D)
  torch::nn::Linear w2 = nullptr;  // (D, F)
  torch::nn::Linear w3 = nullptr;  // (F, D)
};
TORCH_MODULE(SwiGlu);

// x + attention(norm(x)), then x + mlp(norm(x)).
struct TransformerLayerImpl : torch::nn::Module {
  TransformerLayerImpl(int64_t width, int64_t heads, int64_t hidden);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& bias,
                        const RotaryTable& rotary);

  SelfAttention attn = nullptr;
  SwiGlu mlp = nullptr;
  RmsNorm sa_norm = nullptr;
  RmsNorm mlp_norm = nullptr;
};
TORCH_MODULE(TransformerLayer);

}  // namespace kibitz::learn
