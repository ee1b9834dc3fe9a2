// How well a policy predicts the labels of a data set: the numbers that training logs, over a whole
// split and without torch.
//
//   Player player({.path = "models/policy-small"});
//   const Evaluation result = Evaluate(player, Dataset::Open("data"), {.split = Split::kTest});
//   result.all.first.rate();                            // Top-1 accuracy.
#pragma once

#include <cstdint>

#include "base/options.h"
#include "base/skip_counter.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/labels.h"
#include "students/policy/play/player.h"

namespace kibitz::policy {

struct EvaluateOptions {
  Split split = Split::kTest;
  LabelOptions label = {};
  int deep_min_depth = 30;  // Positions whose deepest analysis is at least this deep count as deep.
  uint64_t positions = 0;   // Max; drawn from the whole split. 0: all.
  int batch_size = 256;
};
Fields FieldsOf(EvaluateOptions& options);

// Hits among trials.
struct Accuracy {
  uint64_t hits = 0;
  uint64_t trials = 0;

  double rate() const;
  // 95% confidence interval (Wilson).
  double low() const;
  double high() const;
};

// A mean of numbers.
struct Mean {
  uint64_t count = 0;
  double sum = 0;
  double squares = 0;

  void Add(double value);
  double value() const;
  // Half the width of the 95% confidence interval.
  double error() const;
};

struct EvaluationPart {
  Accuracy first;  // The label's likeliest move has the highest logit (top-1) ...
  Accuracy five;   // ... or one of the five highest (top-5).
  Mean loss;       // Cross-entropy with the soft label, in nats.
};

// Logits are compared over the whole vocabulary, illegal moves included, as in training.
struct Evaluation {
  EvaluationPart all;
  EvaluationPart deep;
  SkipCounter skipped;    // Positions that have no usable label.
  bool complete = false;  // False after Ctrl-C: the numbers are of the positions before it.
};

// Throws Error, among others when network and data have different vocabularies.
Evaluation Evaluate(Player& player, const Dataset& data, const EvaluateOptions& options);

}  // namespace kibitz::policy
