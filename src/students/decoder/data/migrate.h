// Converts older checkpoints to the current vocabulary: the token embedding grows, heads over the
// whole vocabulary shrink to their sub-vocabulary, and a missing thinking policy head becomes a
// copy of the policy head.
#pragma once

#include <string>
#include <vector>

#include "io/weights/state_dict.h"

namespace kibitz::decoder {

struct Migration {
  io::StateDict weights;
  std::vector<std::string> changes;  // For the log: "board_head.weight: [1967, 8] -> [41, 8]".
};

// Current weights are returned unchanged and still point into the file. Rows for tokens that the
// file lacks are zero. Throws Error, naming `place`, when a head is neither over its
// own vocabulary nor over one that contains it.
Migration MigrateStateDict(const io::StateDict& weights, const std::string& place);

}  // namespace kibitz::decoder
