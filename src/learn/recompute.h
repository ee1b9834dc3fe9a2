// Gradient checkpointing: forward keeps only the input, and backward computes the rest again. Less
// memory for a third more time.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace kibitz::learn {

using TensorFunction = std::function<torch::Tensor(const torch::Tensor&)>;

// body(x). `parameters` are all other tensors that the body uses and that require gradients. The
// body must compute the same when it is called again.
torch::Tensor Recomputed(const torch::Tensor& x, const std::vector<torch::Tensor>& parameters,
                         TensorFunction body);

}  // namespace kibitz::learn
