// The head of planes (policy_net.h) in mixed precision, on processors with AVX-512 BF16 or AMX: out
// of pieces of boards (mixed_block.h), with its norm, forward and backward. Letters as there; M
// moves.
//
//   const Tensor logits = MixedPlanes(x, {norm_weight, norm_bias, weight, bias}, boards, epsilon);
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace kibitz::policy {

struct PlanesTensors {
  torch::Tensor norm_weight;  // (C * 64), channel by channel.
  torch::Tensor norm_bias;    // The same, or undefined: an RMSNorm.
  torch::Tensor weight;       // (2 planes, C)
  torch::Tensor bias;         // (M)
};

// x: (N, 64, P, Cp)
torch::Tensor MixedPlanes(const torch::Tensor& x, const PlanesTensors& tensors, int64_t boards,
                          double epsilon);  // (B, M)

}  // namespace kibitz::policy
