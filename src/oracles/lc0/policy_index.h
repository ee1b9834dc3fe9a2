// The index of a move in the policy of lc0's networks: one of 1858 moves, and in a convolutional
// head one of 73 planes at its first square. Squares are seen from the side to move; castling is
// king takes rook; promotion to a knight is the bare move.
#pragma once

#include "games/chess/types.h"

namespace kibitz::oracles {

inline constexpr int kLc0Moves = 1858;

// `mover` is the side that plays the move. From 0 to 1857: by first square, then by last (a1, b1,
// ...), the promotions to queen, rook and bishop after all others.
int Lc0MoveIndex(chess::Color mover, chess::Move move);

struct Lc0PlanePlace {
  int plane = 0;   // Queens by direction (N, NE, E, ...) and distance, knights, promotions.
  int square = 0;  // The first square, as the mover sees it.
};
Lc0PlanePlace Lc0PlaceOf(chess::Color mover, chess::Move move);

}  // namespace kibitz::oracles
