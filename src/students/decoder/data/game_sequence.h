// A game as a training sequence: board, move played, its values, next board, ... The target of
// the policy head is the teacher's best move at every position.
//
//   Rng rng({.seed = seed, .epoch = epoch, .sample = number, .purpose = Purpose("game")});
//   Sequence sample = GameSequence(game, options, rng);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/board.h"
#include "students/decoder/data/sequence.h"

namespace kibitz::decoder {

// A position of a game with its labels.
struct Ply {
  chess::Board board;
  TokenId played = 0;
  TokenId best = 0;
  float wl = 0;  // Win minus loss for the side to move.
  float d = 0;
  bool valid = false;  // wl and d are known.
  // The ply before is missing or leads to another position: a sequence cannot cross here.
  bool starts_run = false;
};

struct GameOptions {
  int max_seq_len = 1024;
  double skip_board_prob = 0.0;  // Boards left out, so that the network tracks the moves.
};

// Random choices.
struct GameChoices {
  size_t start = 0;                 // The first ply shown.
  std::vector<bool> board_skipped;  // By ply; the board of the first ply shown is never skipped.
};

GameChoices DrawGameChoices(std::span<const Ply> game, const GameOptions& options, Rng& rng);

// The plies from choices.start to the end of their run, cut to max_seq_len.
Sequence GameSequence(std::span<const Ply> game, const GameOptions& options,
                      const GameChoices& choices);
Sequence GameSequence(std::span<const Ply> game, const GameOptions& options, Rng& rng);

}  // namespace kibitz::decoder
