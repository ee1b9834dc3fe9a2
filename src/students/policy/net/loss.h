// The policy's loss: cross-entropy with soft labels. Letters: B positions, M moves, E entries of
// all labels (a move and its share each).
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

  TargetBatch To(torch::Device device) const;
};
// Takes over the batch's memory without a copy.
TargetBatch ToTensors(Batch&& batch);
// The labels as a dense tensor: (B, moves), mostly zeros.
torch::Tensor DenseLabels(const TargetBatch& batch, int64_t moves);

// The mean over positions of -sum share * log p(move).
torch::Tensor SoftLoss(const torch::Tensor& logits, const TargetBatch& batch);
// The same from dense labels.
torch::Tensor DenseSoftLoss(const torch::Tensor& logits, const torch::Tensor& labels);

// Positions whose best move has the highest logit, and one of the five highest.
struct Hits {
  double first = 0;
  double five = 0;
};
Hits CountHits(const torch::Tensor& logits, const torch::Tensor& best);

}  // namespace kibitz::policy
