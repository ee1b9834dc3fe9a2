// Logits of classes that each read two rows of a block, such as moves that read the two squares of
// their board: out[b][m] = weight[m] . (x[begins[b] + first[m]] + x[begins[b] + second[m]]). On the
// CPU in float32. Letters: B blocks, M classes, D width.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kibitz::learn {

// Of each class, in its block.
struct PairRows {
  std::vector<int32_t> first;   // M
  std::vector<int32_t> second;  // M
};

torch::Tensor PairLogits(const torch::Tensor& x,       // (rows, D)
                         const torch::Tensor& weight,  // (M, D)
                         std::vector<int64_t> begins,  // B; rows of no two blocks are the same.
                         std::shared_ptr<const PairRows> rows);  // (B, M)

}  // namespace kibitz::learn
