// The three objectives of the 2048 network. All losses are means over the batch. Letters: B boards,
// N bins.
#pragma once

#include <torch/torch.h>

#include <array>
#include <optional>
#include <vector>

#include "students/twenty48/data/batches.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

// What the means of the losses are over.
struct RowCounts {
  std::array<double, 4> legal = {};  // Rows where each move is legal.
  double sound = 0;                  // Rows whose move is legal.
  double rows = 0;
};

// A batch as tensors.
struct TargetRows {
  torch::Tensor tokens;  // (B, 16) int64
  torch::Tensor legal;   // (B, 4) bool
  torch::Tensor moves;   // (B) int64: the move made.
  torch::Tensor bins;    // (B, 4) int64; of binned_ev only.
  torch::Tensor soft;    // (B, 4) float; of tsad_soft only.

  // Of several ranks: counts of all. Then the losses of all ranks sum to that of all rows.
  std::optional<RowCounts> all = {};

  TargetRows To(torch::Device device) const;
};
RowCounts CountRows(const Batch& batch);
TargetRows ToTensors(const Batch& batch, const TargetOptions& target, const Binner& binner);

struct Losses {
  torch::Tensor total;
  // (4). binned_ev: of each head. hard_move: over the rows with each move, legal or not; 0 without
  // rows.
  torch::Tensor head_losses;
  torch::Tensor kd;   // tsad_soft: the divergence ...
  torch::Tensor aux;  // ... and the cross-entropy of the move, if it has a weight.
  torch::Tensor kl;   // (B), tsad_soft only.
};

// Cross-entropy of each move's bin: a head's loss is the mean over the rows where its move is
// legal; the total is their sum. logits: (B, 4, N).
Losses BinnedLoss(const torch::Tensor& logits, const TargetRows& rows);
// Cross-entropy of the move made, over rows where it is legal. `mask`: without the illegal
// moves. logits: (B, 4).
Losses HardMoveLoss(const torch::Tensor& logits, const TargetRows& rows, bool mask);
// The divergence from the soft targets, illegal moves masked, plus the cross-entropy of the move
// made over unmasked logits. logits: (B, 4).
Losses TsadLoss(const torch::Tensor& logits, const TargetRows& rows, const TargetOptions& options);

Losses LossOf(const torch::Tensor& logits, const TargetRows& rows, const TargetOptions& options);

// The network's move: the likeliest legal move of a policy; with binned heads the legal move with
// the highest probability of the last bin.
torch::Tensor Played(const torch::Tensor& logits, const torch::Tensor& legal);  // (B)

}  // namespace kibitz::twenty48
