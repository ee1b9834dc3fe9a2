// Perft: the number of legal move sequences of a given length. The standard test of a move
// generator's correctness and speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "games/chess/board.h"

namespace kibitz::chess {

// How the last ply is counted.
enum class PerftLeaf {
  kCount,  // By counting move targets; fastest.
  kList,   // By making the list of legal moves, as Stockfish's perft does.
};

// Throws Error of kind kInterrupted after Ctrl-C.
uint64_t Perft(const Board& board, int depth, PerftLeaf leaf = PerftLeaf::kCount);

struct PerftMove {
  Move move;
  uint64_t nodes = 0;
};

struct PerftProgress {
  int threads = 1;
  // Called after each part, from any thread, with the parts done and all parts. May throw to stop.
  std::function<void(size_t done, size_t all)> on_part;
};

// The count below each legal move, in the order of LegalMoves. `depth` is at least 1.
std::vector<PerftMove> PerftDivide(const Board& board, int depth, const PerftProgress& progress);

}  // namespace kibitz::chess
