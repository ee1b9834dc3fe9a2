// A player against the soft labels of a policy data set: how often its first move, or one of its
// five likeliest, is the label's best; the cross-entropy; and calibration: is a move that the
// player finds 70% likely the label's best in 70% of the positions?
//
//   const LabelResult result = RunLabels({.data = "data"}, asker, run, settings, &progress);
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "arena/asker.h"
#include "arena/game_run.h"
#include "base/skip_counter.h"
#include "students/policy/data/dataset.h"

namespace kibitz::arena {

struct LabelInput {
  std::string data = {};  // Folder of a policy data set.
  policy::Split split = policy::Split::kTest;
  int64_t positions = 1000;  // Drawn from the split; 0: all.
};
Fields FieldsOf(LabelInput& input);

struct CalibrationBin {
  int64_t positions = 0;
  double probability = 0;  // Sum of what the player gave its likeliest move.
  double share = 0;        // Sum of what the label gives that move.
  int64_t hits = 0;        // It was the label's best.
};

struct LabelResult {
  std::string player;
  std::optional<bool> one_ply = {};  // As OnePlyOf.
  int64_t positions = 0;
  int64_t first = 0;         // Top-1 hits.
  int64_t five = 0;          // Top-5 hits.
  double cross_entropy = 0;  // Sum, in nats, over the player's probabilities of legal moves.
  std::array<CalibrationBin, 10> bins{};  // By the probability of the likeliest move.
  SkipCounter skipped;

  // Expected calibration error: the mean distance of probability and hits over the bins.
  double calibration_error() const;
  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

LabelResult RunLabels(const LabelInput& input, Asker& asker, const RunOptions& run,
                      const Json& settings, Progress* progress);

}  // namespace kibitz::arena
