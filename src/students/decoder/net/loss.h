// One training step's loss: two passes over the batch (causal for the board head; prefix, where a
// board's tokens see each other, for moves and values), five losses, their weighted sum.
//
//   LossAndMetrics taught = PackedLoss(net, batch, {.phase = Phase::kFinetune});
//   taught.loss.backward();
//   metrics += taught.metrics;
//
// Both versions mean the same; PlainLoss is the reference, PackedLoss the one to train with.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "students/decoder/data/batch.h"
#include "students/decoder/data/metrics.h"
#include "students/decoder/net/decoder_net.h"

namespace kibitz::decoder {

struct LossOptions {
  Phase phase = Phase::kFinetune;
  LossWeights weights = {};
  // Keep only each layer's input and compute the rest again on the way back: less memory, a third
  // more time. PackedLoss only.
  bool recompute_layers = false;
};

struct LossAndMetrics {
  torch::Tensor loss;  // One number, with its graph when gradients are on.
  Metrics metrics;
};

// Every row padded to `padded_length`, on the net's device.
LossAndMetrics PlainLoss(DecoderNet& net, const Batch& batch, const LossOptions& options,
                         int32_t padded_length);

// Packed, on the CPU in f32.
LossAndMetrics PackedLoss(DecoderNet& net, const Batch& batch, const LossOptions& options);

}  // namespace kibitz::decoder
