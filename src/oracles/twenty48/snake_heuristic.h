// An evaluation with one plan: the largest tile in a corner, the others in descending order along a
// snake through the rows.
#pragma once

#include <array>
#include <vector>

#include "oracles/twenty48/afterstate_value.h"

namespace kibitz::oracles {

class SnakeHeuristic : public AfterstateValue {
 public:
  SnakeHeuristic();

  // The weighted sum of all tiles, where each place of the snake has half the weight of the one
  // before; the max over the snake's eight symmetries.
  void Evaluate(std::span<const twenty48::Board> afterstates,
                std::span<float> values) const override;
  bool InPoints() const override { return false; }
  std::string Name() const override { return "snake"; }

 private:
  std::array<std::vector<float>, 4> rows_;  // By row of the board and four nibbles.
};

}  // namespace kibitz::oracles
