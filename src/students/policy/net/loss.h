// What the policy is taught: the label's shares, by cross-entropy. Letters: B positions, M moves, E
// shares of all labels.
#pragma once

#include <torch/torch.h>

#include "students/policy/data/batches.h"

namespace kibitz::policy {

// A batch as tensors.
struct TargetBatch {
  torch::Tensor inputs;  // (B, inputs)
  torch::Tensor rows;    // (E) int64
  torch::Tensor moves;   // (E) int64
  torch::Tensor shares;  // (E)
  torch::Tensor best;    // (B) int64
};
// Takes the batch's memory; nothing is copied.
TargetBatch ToTensors(Batch&& batch);
// The labels written out: (B, moves), mostly zeros.
torch::Tensor DenseLabels(const TargetBatch& batch, int64_t moves);

// The mean over positions of -sum share * log p(move), from the shares there are.
torch::Tensor SoftLoss(const torch::Tensor& logits, const TargetBatch& batch);
// The same from labels written out.
torch::Tensor DenseSoftLoss(const torch::Tensor& logits, const torch::Tensor& labels);

// How many positions have the label's best move first, and among the first five.
struct Hits {
  double first = 0;
  double five = 0;
};
Hits CountHits(const torch::Tensor& logits, const torch::Tensor& best);

}  // namespace kibitz::policy
