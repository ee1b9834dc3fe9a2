// The single terms of the losses, and how they become one number. Shared by both versions of a
// step.
#pragma once

#include <torch/torch.h>

#include "students/decoder/net/loss.h"

namespace kibitz::decoder {

// One head's answers: the loss of each term and whether its first choice was right.
struct HeadTerms {
  torch::Tensor loss;  // (N)
  torch::Tensor hit;   // (N) bool
};
// Cross-entropy over a vocabulary. logits: (N, vocabulary); targets: (N).
HeadTerms ScoreChoice(const torch::Tensor& logits, const torch::Tensor& targets);

struct ValueTerms {
  torch::Tensor loss;   // (N)
  torch::Tensor error;  // (N) Absolute, of the distribution's mean.
};
ValueTerms ScoreValue(const torch::Tensor& logits, const torch::Tensor& targets,
                      const torch::Tensor& centres);

// In the order of the batch's lists.
struct Terms {
  HeadTerms board;          // Scored tokens.
  HeadTerms final_move;     // Moves that are not `thinking`.
  HeadTerms thinking_move;  // Those that are; not there in pretraining.
  ValueTerms wl;            // Values that are `valid`.
  ValueTerms d;
};

LossAndMetrics Combine(const Batch& batch, const Terms& terms, const LossOptions& options);

}  // namespace kibitz::decoder
