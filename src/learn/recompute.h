// Gradients without keeping what was computed: only the input stays, the rest is computed again on
// the way back. Less memory for a third more time.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace kibitz::learn {

using TensorFunction = std::function<torch::Tensor(const torch::Tensor&)>;

// body(x), where `parameters` are all tensors besides x that the body uses and that want gradients.
// The body must give the same again when called a second time.
torch::Tensor Recomputed(const torch::Tensor& x, const std::vector<torch::Tensor>& parameters,
                         TensorFunction body);

}  // namespace kibitz::learn
