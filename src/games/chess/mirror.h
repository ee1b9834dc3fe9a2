// A position seen in a mirror: the same chess on other squares.
//
//   Board black = SwapColours(board);  // The ranks mirrored, the colours swapped.
//   if (CanMirrorFiles(board)) board = MirrorFiles(board);
#pragma once

#include "games/chess/board.h"
#include "games/chess/types.h"

namespace kibitz::chess {

Board SwapColours(const Board& board);
Move SwapColours(Move move);

// Castling tells left from right: nobody may have the right to it.
bool CanMirrorFiles(const Board& board);
Board MirrorFiles(const Board& board);
Move MirrorFiles(Move move);

}  // namespace kibitz::chess
