// The terms of the five losses and their weighted sum. Shared by both versions of the loss.
#pragma once

#include <torch/torch.h>

#include "students/decoder/net/loss.h"

namespace kibitz::decoder {

// Of one head: the loss of each term, and whether its argmax is the target.
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
