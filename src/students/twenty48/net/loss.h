// What the 2048 network is taught, three ways. All losses are means over the batch. Letters: B
// boards, N bins.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "students/twenty48/data/batches.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

// A batch as tensors.
struct TargetRows {
  torch::Tensor tokens;  // (B, 16) int64
  torch::Tensor legal;   // (B, 4) bool
  torch::Tensor moves;   // (B) int64: the move made.
  torch::Tensor bins;    // (B, 4) int64; of binned_ev only.
  torch::Tensor soft;    // (B, 4) float; of tsad_soft only.
};
TargetRows ToTensors(const Batch& batch, const TargetOptions& target, const Binner& binner);

struct Losses {
  torch::Tensor total;
  // (4) of binned_ev: each head's. Of hard_move: of the rows with each move, legal or not. 0
  // without rows.
  torch::Tensor head_losses;
  torch::Tensor kd;   // Of tsad_soft: the divergence ...
  torch::Tensor aux;  // ... and the cross-entropy of the move, where it is asked.
  torch::Tensor kl;   // (B), of tsad_soft.
};

// Cross-entropy of each move's bin: a head's loss is the mean over the rows where its move is
// legal; the heads' losses add up. logits: (B, 4, N).
Losses BinnedLoss(const torch::Tensor& logits, const TargetRows& rows);
// Cross-entropy of the move made, over rows where it is legal. With `mask` illegal moves take no
// part. logits: (B, 4).
Losses HardMoveLoss(const torch::Tensor& logits, const TargetRows& rows, bool mask);
// The divergence from the soft targets, illegal moves masked, and beside it the cross-entropy of
// the move made over unmasked logits. logits: (B, 4).
Losses TsadLoss(const torch::Tensor& logits, const TargetRows& rows, const TargetOptions& options);

Losses LossOf(const torch::Tensor& logits, const TargetRows& rows, const TargetOptions& options);

// What the network would play: of a policy the likeliest legal move, of binned heads the one most
// likely to be in the last bin.
torch::Tensor Played(const torch::Tensor& logits, const torch::Tensor& legal);  // (B)

}  // namespace kibitz::twenty48
