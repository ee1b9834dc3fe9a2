// Expectimax for 2048: the best expected value over a few moves.
//
//   Expectimax search(value, {.depth = 3});
//   const SearchResult result = search.Search(board);
//   if (result.best) game.Play(*result.best, rng);
//
// Depth 1 evaluates the four slides. Each further depth averages over all tiles that may appear and
// takes the best reply to each. Nothing is pruned, so a value depends on board, depth and
// evaluation alone: the transposition table stays valid from move to move, and games do not depend
// on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "games/twenty48/slide.h"
#include "oracles/twenty48/afterstate_value.h"

namespace kibitz::oracles {

struct ExpectimaxOptions {
  int depth = 3;        // Moves to search, at least 1.
  int table_bits = 18;  // The table has 2^this entries of 24 bytes; 0: no table.
};

struct SearchResult {
  std::array<std::optional<double>, 4> values;  // By IndexOf(move); nothing where illegal.
  std::optional<twenty48::Move> best;           // Nothing when the game is over.
};

class Expectimax {
 public:
  // `value` is borrowed. Not for several threads at once: give each its own.
  Expectimax(const AfterstateValue& value, const ExpectimaxOptions& options);

  SearchResult Search(const twenty48::Board& board);

  // Boards evaluated so far.
  uint64_t evaluations() const { return evaluations_; }

 private:
  struct Entry {
    uint64_t packed = 0;
    uint32_t extra = 0;
    int depth = 0;  // Moves searched below; 0: empty.
    double value = 0;
  };

  // The mean over the tiles that may appear, `depth` moves before the end.
  double Chance(const twenty48::Board& afterstate, int depth);
  double AverageOverTiles(const twenty48::Board& afterstate, int depth);
  // The value of the best move; that of a lost game where there is none.
  double Best(const twenty48::Board& board, int depth);
  double BestByEvaluation(const twenty48::Board& board);
  Entry* Slot(const twenty48::Board& afterstate, int depth);

  const AfterstateValue& value_;
  ExpectimaxOptions options_;
  double points_weight_;  // 1 where values are in points, else 0.
  std::vector<Entry> table_;
  uint64_t evaluations_ = 0;
};

}  // namespace kibitz::oracles
