// Where a head of planes has the logit of a move: on the move's two squares, in the plane of its
// kind (direction and distance, knight's jump, promotion). The weights of a plane are the same on
// all squares.
//
//   const MovePlane& plane = MovePlanes()[378];           // e2e4: two squares up.
#pragma once

#include <cstdint>
#include <vector>

namespace kibitz::policy {

// Eight directions of up to seven squares, eight jumps, four promotions in three directions.
inline constexpr int kMovePlanes = 8 * 7 + 8 + 4 * 3;

struct MovePlane {
  uint8_t plane = 0;
  uint8_t from = 0;
  uint8_t to = 0;
};

// Of the full vocabulary, in its order.
const std::vector<MovePlane>& MovePlanes();

}  // namespace kibitz::policy
