// A judge of boards that needs no training: each row and column is worth what its shape promises.
// Empty cells and equal neighbours are good; tiles that go up and down instead of falling to one
// side are bad, the more the larger they are. One look into a table of rows for each of the eight.
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
