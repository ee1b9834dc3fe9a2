// The tile that appears after a move: in any empty cell with the same chance, a 2 nine times out
// of ten and else a 4. And a game in progress.
//
//   Rng rng({.seed = seed, .sample = number, .purpose = Purpose("2048 spawn")});
//   Game game = Game::Start(rng);
//   while (unsigned legal = LegalMoves(game.board)) game.Play(Choose(game.board, legal), rng);
#pragma once

#include <cstdint>

#include "base/random.h"
#include "games/twenty48/board.h"
#include "games/twenty48/slide.h"

namespace kibitz::twenty48 {

inline constexpr double kChanceOfTwo = 0.9;

// The cell of the n-th empty one, from 0 in order of the bits of EmptyNibbles().
int EmptyCell(const Board& board, int n);

// CHECKs that there is an empty cell.
Board Spawn(const Board& board, Rng& rng);

struct Game {
  Board board;
  int64_t score = 0;
  int64_t moves = 0;

  // Two tiles on an empty board.
  static Game Start(Rng& rng);
  // CHECKs that the move is legal.
  void Play(Move move, Rng& rng);
  // The same where the slide is known.
  void Play(const Slid& slid, Rng& rng);
};

}  // namespace kibitz::twenty48
