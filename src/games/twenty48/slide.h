// The four moves. Tiles slide to one side; two equal neighbours become one of the next rank, each
// tile at most once a move, those nearest to the wall first. A move that changes nothing is not
// legal. The points of a move are the tiles it made.
//
//   const Slid slid = Slide(board, Move::kLeft);
//   if (slid.legal(board)) score += slid.points;
#pragma once

#include <array>
#include <cstdint>

#include "games/twenty48/board.h"

namespace kibitz::twenty48 {

struct Slid {
  Board board;  // Before a new tile appears.
  int32_t points = 0;

  bool legal(const Board& before) const { return board != before; }
};

Slid Slide(const Board& board, Move move);
// All four at once, by IndexOf(move): cheaper than one by one.
std::array<Slid, 4> SlideAll(const Board& board);
// Bit IndexOf(move) for each legal move; 0 when the game is over.
unsigned LegalMoves(const Board& board);

// Cell by cell, for any tiles: the reference for the tables.
Slid SlidePlain(const Board& board, Move move);

}  // namespace kibitz::twenty48
