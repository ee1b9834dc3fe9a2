// The loss of a batch: two passes (causal for the board head; prefix, where a board's tokens see
// each other, for moves and values), five losses, their weighted sum.
//
//   LossAndMetrics result = PackedLoss(net, batch, {.phase = Phase::kFinetune});
//   result.loss.backward();
//   metrics += result.metrics;
//
// Both versions compute the same: PlainLoss is the reference and runs on any device, PackedLoss is
// for training on the CPU.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "students/decoder/data/batch.h"
#include "students/decoder/data/metrics.h"
#include "students/decoder/net/decoder_net.h"

namespace kibitz::decoder {

struct LossOptions {
  Phase phase = Phase::kFinetune;
  LossWeights weights = {};
  // Gradient checkpointing: backward computes each layer again. PackedLoss only.
  bool recompute_layers = false;
  // Passes that predict the values a sequence with `own_values` shows. After the n-th, the first n
  // values of a line depend on no target.
  int own_value_passes = 2;
  // Of several ranks: how many targets of each kind all of them have in this step (CountTargets).
  // Then the losses of all ranks sum to the loss of all targets. Empty: this batch alone.
  std::vector<double> targets = {};
};

struct LossAndMetrics {
  torch::Tensor loss;  // Scalar, with its graph when gradients are on.
  Metrics metrics;
};

// The number of targets of each loss.
std::vector<double> CountTargets(const Batch& batch);

// Every row padded to `padded_length`, on the net's device.
LossAndMetrics PlainLoss(DecoderNet& net, const Batch& batch, const LossOptions& options,
                         int32_t padded_length);

// Packed, on the CPU in float32.
LossAndMetrics PackedLoss(DecoderNet& net, const Batch& batch, const LossOptions& options);

}  // namespace kibitz::decoder
