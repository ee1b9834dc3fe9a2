// Rows of a large table by index, on the CPU. Its backward writes a dense gradient, one task for
// each column of indices, so that it does not depend on the number of threads.
#pragma once

#include <torch/torch.h>

namespace kibitz::twenty48 {

// table: (N, E), float32. entries: (B, P), int64; no two columns share an entry.
torch::Tensor LookUpRows(const torch::Tensor& table, const torch::Tensor& entries);  // (B, P, E)

}  // namespace kibitz::twenty48
