// A position as a picture in text.
#pragma once

#include <optional>
#include <string>

#include "games/chess/board.h"

namespace kibitz::chess {

struct DiagramStyle {
  bool color = false;             // Square colours by terminal escapes; needs a terminal.
  bool unicode = true;            // Piece symbols instead of letters.
  bool flipped = false;           // Black at the bottom.
  std::optional<Move> last_move;  // Its squares are marked.
};

// Eight lines with ranks at the left, then the files.
std::string Diagram(const Board& board, const DiagramStyle& style = {});

}  // namespace kibitz::chess
