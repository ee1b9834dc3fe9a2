// Turning and mirroring: a position of 2048 teaches eight times as much. A turn of k times 90
// degrees clockwise comes first, then a flip: none, left-right or up-down.
#pragma once

#include <array>
#include <cstdint>

#include "games/twenty48/board.h"
#include "students/twenty48/data/step_row.h"

namespace kibitz::twenty48 {

struct View {
  int turns = 0;  // Of 90 degrees clockwise, 0 to 3.
  int flip = 0;   // 0 none, 1 left-right, 2 up-down.
};

// Cell i of the result comes from cell CellMap(view)[i].
std::array<uint8_t, kCells> CellMap(const View& view);
// The move `m` becomes MoveMap(view)[m].
std::array<uint8_t, 4> MoveMap(const View& view);

// The board as it looks there.
Board Seen(const Board& board, const View& view);
// The view in which the board, read cell by cell, has the largest tiles first: the same board,
// however it is turned or mirrored, looks the same there.
View CanonicalView(const Board& board);

// The row as it looks there: board, mask, move, legality and values.
StepRow Augmented(const StepRow& row, const View& view);

}  // namespace kibitz::twenty48
