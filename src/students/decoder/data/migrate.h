// Older checkpoints brought to the present vocabulary: the token embedding grows, heads over the
// whole vocabulary shrink to their own part of it, and the thinking policy head starts as a copy of
// the policy head.
#pragma once

#include <string>
#include <vector>

#include "io/weights/state_dict.h"

namespace kibitz::decoder {

struct Migration {
  io::StateDict weights;
  std::vector<std::string> changes;  // For people: "board_head.weight: [1967, 8] -> [41, 8]".
};

// Weights that need nothing come back as they are, and point into the same file. Rows for tokens
// the file does not know are zero. Throws Error, naming `place`, when a head is neither over its
// own vocabulary nor over one that contains it.
Migration MigrateStateDict(const io::StateDict& weights, const std::string& place);

}  // namespace kibitz::decoder
