// Monte Carlo tree search with an evaluator: one position, or many at once whose leaves share
// batches.
//
//   Lc0Network net("maia-1500.pb.gz");
//   SearchReport report = Search(net, {.start = board}, {.leaves = 16}, {.visits = 800});
//   report.moves.front().move;
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "oracles/search/evaluator.h"
#include "oracles/search/tree.h"

namespace kibitz::oracles {

struct SearchLimits {
  int64_t visits = 800;       // Of the root, those kept from before included.
  double seconds = 0;         // 0: as long as it takes.
  std::stop_token stop = {};  // Ends the search; what was found is kept.
};

// Leaves that fit a search of so many visits: many make full batches, few judge by more of what is
// known already.
int LeavesFor(int64_t visits, int batch);

// Goes on with the tree; `on_batch`, if any, is called after each batch.
void Search(Evaluator& evaluator, SearchTree& tree, const SearchLimits& limits,
            const std::function<void()>& on_batch = {});

// Searches of many games at once. A report depends on its game alone, however many there are,
// unless time ends it. Where the game is over, the report has no moves.
std::vector<SearchReport> SearchMany(Evaluator& evaluator, std::span<const GameSoFar> games,
                                     const TreeOptions& options, const SearchLimits& limits,
                                     const std::function<void()>& on_batch = {});

}  // namespace kibitz::oracles
