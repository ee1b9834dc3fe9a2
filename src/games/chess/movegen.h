// Legal moves. Checks and pins are found first, so that every move generated is legal and no move
// has to be tried on a board.
#pragma once

#include "games/chess/board.h"
#include "games/chess/types.h"

namespace kibitz::chess {

// All legal moves of the side to move, in no particular order.
MoveList LegalMoves(const Board& board);

// How many there are; cheaper than making the list.
int CountLegalMoves(const Board& board);

bool HasLegalMove(const Board& board);

// Whether this very move, kind included, is legal here.
bool IsLegal(const Board& board, Move move);

// Where the piece on `from` may go (castling: the rook's square); empty where none of the side to
// move stands there. For asking about few moves of a position.
Bitboard LegalTargets(const Board& board, Square from);

// Legal moves of one piece type that end on `to` (for castling: on the rook). For reading SAN.
MoveList LegalMovesTo(const Board& board, PieceType type, Square to);

// The same as LegalMoves and CountLegalMoves, with the side to move known at compile time.
template <Color us>
void AddLegalMoves(const Board& board, MoveList& moves);
template <Color us>
int CountLegalMovesFor(const Board& board);

}  // namespace kibitz::chess
