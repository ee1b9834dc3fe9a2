// Parts of a transformer that compute forward and backward in one go each, on the CPU in f32. Same
// meaning as in transformer.h; tests compare them. Letters: R rows (tokens), D width, F hidden
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

// x * weight^T for several weights (N_i, D) at once: their gradients meet in one sum.
std::vector<torch::Tensor> Project(const torch::Tensor& x,                      // (R, D)
                                   const std::vector<torch::Tensor>& weights);  // (R, N_i) each

// onto + x * weight^T.
torch::Tensor AddProjected(const torch::Tensor& onto,     // (R, N)
                           const torch::Tensor& x,        // (R, D)
                           const torch::Tensor& weight);  // (N, D)

}  // namespace kibitz::learn
