// An evaluation that needs no training: the sum of a score for each row and column. Empty cells and
// equal neighbours score well; rows that are not monotonic score badly, the more the larger their
// tiles. Eight lookups in a table of all rows.
#pragma once

#include <memory>
#include <vector>

#include "oracles/twenty48/afterstate_value.h"

namespace kibitz::oracles {

class RowHeuristic : public AfterstateValue {
 public:
  RowHeuristic();

  void Evaluate(std::span<const twenty48::Board> afterstates,
                std::span<float> values) const override;
  bool InPoints() const override { return false; }
  std::string Name() const override { return "heuristic"; }

 private:
  std::vector<float> rows_;  // By four nibbles.
};

}  // namespace kibitz::oracles
