// What a network should answer in a position: the soft label, in the numbers of its moves.
//
//   Target target;
//   if (MakeTarget(sample, data.vocabulary(), {.flip = true}, target)) Learn(target.shares);
#pragma once

#include <cstdint>
#include <vector>

#include "students/policy/data/dataset.h"
#include "students/policy/data/labels.h"

namespace kibitz::policy {

struct TargetOptions {
  bool flip = false;  // The network sees the board from the side to move.
  LabelOptions label = {};
};

struct Target {
  std::vector<MoveShare> shares;  // Moves as the network numbers them; they sum to 1.
  uint16_t best = 0;              // The move with the greatest share; of equals the first.
  // Analyses not used: their move is not in the vocabulary, or its mirror image is not.
  uint32_t outside = 0;
};

// Depth of the deepest analysis that MakeTarget would use; -1 without one.
int UsableDepth(const Sample& sample, const Vocabulary& vocabulary, bool flip);

// False when no analysis can be used; `shares` is empty then.
bool MakeTarget(const Sample& sample, const Vocabulary& vocabulary, const TargetOptions& options,
                Target& out);

}  // namespace kibitz::policy
