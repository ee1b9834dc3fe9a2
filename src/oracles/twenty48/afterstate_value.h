// The evaluation function at the leaves of an expectimax. An afterstate is a 2048 board after a
// slide, before the new tile.
#pragma once

#include <span>
#include <string>

#include "games/twenty48/board.h"

namespace kibitz::oracles {

class AfterstateValue {
 public:
  virtual ~AfterstateValue() = default;

  // One value per board. May be called from many threads.
  virtual void Evaluate(std::span<const twenty48::Board> afterstates,
                        std::span<float> values) const = 0;
  // Whether values are points still to come, to which the search adds the points of moves. Else
  // they are in a unit of their own, and the search ignores points.
  virtual bool InPoints() const = 0;
  // For people and for the records of games: "ntuple tables.safetensors".
  virtual std::string Name() const = 0;
};

}  // namespace kibitz::oracles
