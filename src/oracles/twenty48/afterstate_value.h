// What an expectimax knows about the boards where it stops. An afterstate is a 2048 board after a
// slide, before the new tile.
#pragma once

#include <span>
#include <string>

#include "games/twenty48/board.h"

namespace kibitz::oracles {

class AfterstateValue {
 public:
  virtual ~AfterstateValue() = default;

  // One value a board. May be called from many threads.
  virtual void Evaluate(std::span<const twenty48::Board> afterstates,
                        std::span<float> values) const = 0;
  // Whether values are points still to come, so that the points of a move add to them; else they
  // say how good a board is in a unit of their own, and points on the way do not count.
  virtual bool InPoints() const = 0;
  // For people and for the records of games: "ntuple tables.safetensors".
  virtual std::string Name() const = 0;
};

}  // namespace kibitz::oracles
