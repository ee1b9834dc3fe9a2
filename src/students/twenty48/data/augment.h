// Augmentation by the eight symmetries of the board: a rotation by k times 90 degrees clockwise
// first, then a flip: none, left-right or up-down.
#pragma once

#include <array>
#include <cstdint>

#include "games/twenty48/board.h"
#include "students/twenty48/data/step_row.h"

namespace kibitz::twenty48 {

struct View {
  int turns = 0;  // Rotations by 90 degrees clockwise, 0 to 3.
  int flip = 0;   // 0 none, 1 left-right, 2 up-down.
};

// Cell i of the result comes from cell CellMap(view)[i].
std::array<uint8_t, kCells> CellMap(const View& view);
// The move `m` becomes MoveMap(view)[m].
std::array<uint8_t, 4> MoveMap(const View& view);

// The board in that view.
Board Seen(const Board& board, const View& view);
// The view in which the board, read cell by cell, has the largest tiles first. All eight symmetries
// of a board look the same in it.
View CanonicalView(const Board& board);

// The row in that view: board, mask, move, legality and values.
StepRow Augmented(const StepRow& row, const View& view);

}  // namespace kibitz::twenty48
