#include "learn/transformer.h"

#include <cmath>

#include "base/check.h"

namespace kibitz::learn {
namespace {

torch::nn::Linear LinearWithoutBias(int64_t inputs, int64_t outputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false));
}

}  // namespace

RmsNormImpl::RmsNormImpl(int64_t width)
    : scale(register_parameter("scale", torch::ones({width}))) {}

torch::Tensor RmsNormImpl::forward(const torch::Tensor& x) {
  const auto wide = x.to(torch::kFloat32);
  const auto mean = wide.square().mean(-1, /*keepdim=*/true);  // (..., 1)
  return (wide * torch::rsqrt(mean + kRmsEpsilon)).to(x.dtype()) * scale;
}

RotaryTable MakeRotaryTable(int64_t positions, int64_t head_width) {
  const auto exponents = torch::arange(0, head_width, 2).to(torch::kFloat32) /
                         static_cast<double>(head_width);         // (E / 2)
  const auto frequencies = 1.0 / torch::pow(10000.0, exponents);  // (E / 2)
  const auto angles =
      torch::outer(torch::arange(positions).to(torch::kFloat32), frequencies);  // (S, E / 2)
  return {angles.cos(), angles.sin()};
}

torch::Tensor Rotate(const torch::Tensor& x, const RotaryTable& table) {
  const int64_t length = x.size(1);
  // One table for all sequences, (S, E / 2), or one of each, (B, S, E / 2).
  const auto cosine = table.cosine.narrow(-2, 0, length).unsqueeze(-2);  // (..., S, 1, E / 2)
  const auto sine = table.sine.narrow(-2, 0, length).unsqueeze(-2);      // (..., S, 1, E / 2)
  const auto pairs = x.unflatten(-1, std::vector<int64_t>{-1, 2});       // (B, S, H, E / 2, 2)
  const auto even = pairs.select(-1, 0);                                 // (B, S, H, E / 2)
  const auto odd = pairs.select(-1, 1);                                  // (B, S, H, E / 2)
  return torch::stack({even * cosine - odd * sine, odd * cosine + even * sine}, -1).flatten(-2);
}

SelfAttentionImpl::SelfAttentionImpl(int64_t width, int64_t heads)
    : heads(heads),
      q_proj(register_module("q_proj", LinearWithoutBias(width, width))),
      k_proj(register_module("k_proj", LinearWithoutBias(width, width))),
      v_proj(register_module("v_proj", LinearWithoutBias(width, width))),
      output_proj(register_module("output_proj", LinearWithoutBias(width, width))) {
  CHECK(width % (2 * heads) == 0);
}

torch::Tensor SelfAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& bias,
                                         const RotaryTable& rotary) {
  const int64_t head_width = x.size(2) / heads;
  const std::vector<int64_t> by_head = {x.size(0), x.size(1), heads, head_width};
  const auto q = Rotate(q_proj(x).view(by_head), rotary).transpose(1, 2);  // (B, H, S, E)
  const auto k = Rotate(k_proj(x).view(by_head), rotary).transpose(1, 2);  // (B, H, S, E)
  const auto v = v_proj(x).view(by_head).transpose(1, 2);                  // (B, H, S, E)
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  const auto scores = torch::matmul(q * scale, k.transpose(2, 3)) + bias;  // (B, H, S, S)
  const auto mixed = torch::matmul(torch::softmax(scores, -1), v);         // (B, H, S, E)
  return output_proj(mixed.transpose(1, 2).reshape(x.sizes()));            // (B, S, D)
}

SwiGluImpl::SwiGluImpl(int64_t width, int64_t hidden)
    : w1(register_module("w1", LinearWithoutBias(width, hidden))),
      w2(register_module("w2", LinearWithoutBias(hidden, width))),
      w3(register_module("w3", LinearWithoutBias(width, hidden))) {}

torch::Tensor SwiGluImpl::forward(const torch::Tensor& x) { return w2(torch::silu(w1(x)) * w3(x)); }

TransformerLayerImpl::TransformerLayerImpl(int64_t width, int64_t heads, int64_t hidden)
    : attn(register_module("attn", SelfAttention(width, heads))),
      mlp(register_module("mlp", SwiGlu(width, hidden))),
      sa_norm(register_module("sa_norm", RmsNorm(width))),
      mlp_norm(register_module("mlp_norm", RmsNorm(width))) {}

torch::Tensor TransformerLayerImpl::forward(const torch::Tensor& x, const torch::Tensor& bias,
                                            const RotaryTable& rotary) {
  const auto mixed = x + attn(sa_norm(x), bias, rotary);  // (B, S, D)
  return mixed + mlp(mlp_norm(mixed));                    // (B, S, D)
}

}  // namespace kibitz::learn
