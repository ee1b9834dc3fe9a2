// Boards as Python sees them: a position with the moves that led to it, and whatever Python gives
// for one: a FEN, a Board, or a board of python-chess.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "games/chess/board.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::python {

// A game: a start, moves, and the boards between them.
class Game {
 public:
  explicit Game(const chess::Board& start = {}) : boards_{start} {}
  explicit Game(const oracles::GameSoFar& game);

  const chess::Board& start() const { return boards_.front(); }
  const chess::Board& board() const { return boards_.back(); }
  const std::vector<chess::Board>& boards() const { return boards_; }
  const std::vector<chess::Move>& moves() const { return moves_; }
  oracles::GameSoFar so_far() const { return {.start = start(), .moves = moves_}; }

  void Push(chess::Move move);
  // There is a move.
  chess::Move Pop();

 private:
  std::vector<chess::Board> boards_;  // One more than moves.
  std::vector<chess::Move> moves_;
};

// A legal move in UCI or SAN. Throws Error of kind kUsage.
chess::Move MoveOf(const chess::Board& board, const std::string& text);

// A FEN (or EPD), a Board, or an object with fen(): of one with root() and move_stack, as
// python-chess has them, the whole game. Then `moves`, a list of texts or of objects with uci().
Game GameOf(pybind11::handle position, pybind11::handle moves);

void AddBoard(pybind11::module_& module);

}  // namespace kibitz::python
