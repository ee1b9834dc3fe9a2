// The parts of the policy's CNN with fused forward and backward, on the CPU in float32 with 3x3
// kernels; policy_net.h has the same in plain form, tests compare. Letters: B boards, I and C
// channels, Cp padded (PaddedBoard). Results do not depend on the number of threads.
//
//   Tensor x = FusedInput(inputs, conv->weight, conv->bias);
//   x = FusedBlock(x, first, second);
//   x = FusedFlatten(x, norm_weight, norm_bias, epsilon);
#pragma once

#include <torch/torch.h>

#include "students/policy/net/board_layer.h"

namespace kibitz::policy {

// gelu(conv(x)). x: (B, 64, I) square by square, without a gradient of its own; weight: (C, I, 3,
// 3); bias: (C).
torch::Tensor FusedInput(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias);  // (B, 64, Cp)

// x + gelu(conv2(norm2(gelu(conv1(norm1(x)))))). x: (B, 64, Cp). Both have norms of one kind.
torch::Tensor FusedBlock(const torch::Tensor& x, const LayerTensors& first,
                         const LayerTensors& second);  // (B, 64, Cp)

// norm(x) over all numbers of a board, in any order; for windows other than 3x3. x: (B, N), where N
// is a multiple of 64; weight: (N); bias: the same, or undefined for an RMSNorm.
torch::Tensor FusedNorm(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& bias, double epsilon);  // (B, N)

// norm(x), channel by channel. x: (B, 64, Cp); norm_weight: (C * 64); norm_bias: the same, or
// undefined for an RMSNorm.
torch::Tensor FusedFlatten(const torch::Tensor& x, const torch::Tensor& norm_weight,
                           const torch::Tensor& norm_bias, double epsilon);  // (B, C * 64)

}  // namespace kibitz::policy
