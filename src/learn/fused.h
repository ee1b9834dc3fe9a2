// Parts of a transformer with fused forward and backward, on the CPU in float32. They compute the
// same as transformer.h; tests compare them. Letters: R rows (tokens), D width, F hidden
// width.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "learn/transformer.h"

namespace kibitz::learn {

// x: (R, D); scale: (D).
torch::Tensor FusedRmsNorm(const torch::Tensor& x, const torch::Tensor& scale,
                           double epsilon = kRmsEpsilon);  // (R, D)

// silu(gate) * up; all (R, F).
torch::Tensor FusedSwiGlu(const torch::Tensor& gate, const torch::Tensor& up);

// x * weight^T for several weights (N_i, D) at once; backward sums their gradients for x.
std::vector<torch::Tensor> Project(const torch::Tensor& x,                      // (R, D)
                                   const std::vector<torch::Tensor>& weights);  // (R, N_i) each

// onto + x * weight^T.
torch::Tensor AddProjected(const torch::Tensor& onto,     // (R, N)
                           const torch::Tensor& x,        // (R, D)
                           const torch::Tensor& weight);  // (N, D)

}  // namespace kibitz::learn
