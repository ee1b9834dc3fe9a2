// A plain search to a fixed depth over a static evaluation: an opponent whose strength is known,
// and a value where a network has none.
//
//   for (const ScoredMove& scored : Negamax({.start = board}, {.depth = 2}).moves)
//   Show(scored.score);
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "games/chess/board.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::oracles {

enum class Material {
  kPieces,  // Piece values alone: 100, 320, 330, 500, 900.
  kTables,  // The same, and where the pieces stand.
};

// In centipawns, for the side to move. No look ahead.
int StaticScore(const chess::Board& board, Material material);
// The same after the captures that either side would make: no piece is left hanging.
int QuietScore(const chess::Board& board, Material material);

// The expected result in [-1, 1] of so many centipawns: lc0's formula the other way round.
double ExpectedResult(int centipawns);

inline constexpr int kMateScore = 100000;  // Less one for each ply to the mate.

struct NegamaxOptions {
  int depth = 1;  // Plies, the root move counted; at least 1.
  Material material = Material::kTables;
  std::stop_token stop = {};  // The depth reached so far is answered; at least 1.
};

struct ScoredMove {
  chess::Move move;
  int score = 0;  // For the side to move at the root; exact.
  std::vector<chess::Move> pv;
};

struct NegamaxResult {
  std::vector<ScoredMove> moves;  // All legal ones, best first.
  int depth = 0;                  // Reached.
  int64_t nodes = 0;
};

// Repetitions of the game and of the line are draws.
NegamaxResult Negamax(const GameSoFar& game, const NegamaxOptions& options);

}  // namespace kibitz::oracles
