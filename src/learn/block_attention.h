// Attention within short blocks of rows: each row of a block sees all rows of it, and none beyond.
// Rows lie end to end, so that linear layers work on one matrix. Key and value heads may be fewer
// than query heads: query head h uses key head h mod K. On the CPU in float32. Letters: R
// rows, S rows of a block, H query heads, K key heads, E head width.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace kibitz::learn {

struct BlockShape {
  int64_t rows = 16;     // S; R is a multiple of it.
  int64_t heads = 1;     // H
  int64_t kv_heads = 1;  // K, a divisor of H.
};

// Fused forward and backward; the scores are kept for backward.
torch::Tensor BlockAttention(const torch::Tensor& q,    // (R, H E)
                             const torch::Tensor& k,    // (R, K E)
                             const torch::Tensor& v,    // (R, K E)
                             const BlockShape& shape);  // (R, H E)

// The same in plain tensor operations.
torch::Tensor PlainBlockAttention(const torch::Tensor& q, const torch::Tensor& k,
                                  const torch::Tensor& v, const BlockShape& shape);

}  // namespace kibitz::learn
