// Games as PGN text that PgnReader reads back: the seven tags first, SAN, comments, lines of at
// most 80 columns.
//
//   PgnGame game;
//   game.tags = {{"White", "me"}, {"Black", "policy-small"}};
//   game.moves = moves;
//   std::string text = ToPgn(game);
#pragma once

#include <string>

#include "games/chess/pgn.h"

namespace kibitz::chess {

// Tags that are missing of the seven get "?", the result that of the game; FEN and SetUp are added
// for another start than the usual one. Comments of the notes are written, braces in them made
// brackets; NAGs too. Variations are not written.
std::string ToPgn(const PgnGame& game);

// Today's local date as the Date tag has it: "2024.05.31".
std::string PgnDateOfToday();

}  // namespace kibitz::chess
