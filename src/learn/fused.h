// Parts of a transformer with fused forward and backward, on the CPU in float32. They compute the
// same as transformer.h; tests compare them. A block of rows goes through a whole part while it is
// in a thread's cache (products.h). Letters: R rows (tokens), D width, F hidden width.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "learn/transformer.h"

namespace kibitz::learn {

// x: (R, D); scale: (D).
torch::Tensor FusedRmsNorm(const torch::Tensor& x, const torch::Tensor& scale,
                           double epsilon = kRmsEpsilon);  // (R, D)

// x * weight^T for several weights (N_i, D) at once; backward sums their gradients for x.
std::vector<torch::Tensor> Project(const torch::Tensor& x,                      // (R, D)
                                   const std::vector<torch::Tensor>& weights);  // (R, N_i) each

// The same of norm(x). Comes with x itself, for what else uses it: backward then has both
// gradients at once and adds them on the way.
struct NormProjected {
  torch::Tensor x;                     // (R, D)
  std::vector<torch::Tensor> outputs;  // (R, N_i) each
};
NormProjected NormProject(const torch::Tensor& x, const torch::Tensor& scale,
                          const std::vector<torch::Tensor>& weights, double epsilon = kRmsEpsilon);

// onto + x * weight^T.
torch::Tensor AddProjected(const torch::Tensor& onto,     // (R, N)
                           const torch::Tensor& x,        // (R, D)
                           const torch::Tensor& weight);  // (N, D)

// The MLP of a layer with its norm and its residual connection.
struct MlpTensors {
  torch::Tensor scale;  // (D) Of the norm.
  torch::Tensor gate;   // (F, D)
  torch::Tensor up;     // (F, D)
  torch::Tensor down;   // (D, F)
};
// x + (silu(n gate^T) * (n up^T)) down^T, with n = norm(x).
torch::Tensor FusedMlp(const torch::Tensor& x, const MlpTensors& mlp,
                       double epsilon = kRmsEpsilon);  // (R, D)

}  // namespace kibitz::learn
