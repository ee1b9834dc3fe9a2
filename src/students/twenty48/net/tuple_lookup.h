// Rows of a large table by index, on the CPU. The gradient is sparse, so that the optimizer updates
// the rows that were looked up and no others. It does not depend on the number of threads.
#pragma once

#include <torch/torch.h>

namespace kibitz::twenty48 {

// table: (N, E), float32. entries: (B, P), int64; those of a column are all below those of the
// next.
torch::Tensor LookUpRows(const torch::Tensor& table, const torch::Tensor& entries);  // (B, P, E)

}  // namespace kibitz::twenty48
