#include "games/twenty48/spawn.h"

#include <bit>

namespace kibitz::twenty48 {

int EmptyCell(const Board& board, int n) {
  uint64_t empty = board.EmptyNibbles();
  for (int i = 0; i < n; ++i) empty &= empty - 1;
  return 15 - std::countr_zero(empty) / 4;
}

Board Spawn(const Board& board, Rng& rng) {
  const int empty = board.CountEmpty();
  CHECK(empty > 0);
  // One draw for both: cell and tile are the quotient and the rest of one even number.
  const uint64_t draw = rng.Below(static_cast<uint64_t>(empty) * 10);
  const int cell = EmptyCell(board, static_cast<int>(draw / 10));
  const uint64_t rank = draw % 10 == 0 ? 2 : 1;
  return Board::FromBits(board.packed() | rank << Board::Shift(cell), board.extra());
}

Game Game::Start(Rng& rng) {
  Game game;
  game.board = Spawn(Spawn(Board(), rng), rng);
  return game;
}

void Game::Play(Move move, Rng& rng) {
  const Slid slid = Slide(board, move);
  CHECK(slid.legal(board));
  Play(slid, rng);
}

void Game::Play(const Slid& slid, Rng& rng) {
  board = Spawn(slid.board, rng);
  score += slid.points;
  ++moves;
}

}  // namespace kibitz::twenty48
