// A board as a picture in text.
#pragma once

#include <string>

#include "games/twenty48/board.h"

namespace kibitz::twenty48 {

struct DiagramStyle {
  bool color = false;  // Tiles in the game's colours by terminal escapes; needs a terminal.
};

// Four rows of tiles; twelve lines in colour, four without.
std::string Diagram(const Board& board, const DiagramStyle& style = {});

}  // namespace kibitz::twenty48
