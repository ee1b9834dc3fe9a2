// Monte Carlo tree search with an evaluator: one position, or many at once whose leaves share
// batches.
//
//   Lc0Network net({.network = {.path = "maia-1500.pb.gz"}});  // oracles/lc0/network.h
//   SearchTree tree({.start = board}, {.leaves = 16});
//   Search(net, tree, {.visits = 800});
//   chess::Move best = tree.Report().moves.front().move;
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "oracles/search/evaluator.h"
#include "oracles/search/tree.h"

namespace kibitz::oracles {

struct SearchLimits {
  int64_t visits = 800;       // Of the root, including those of a reused tree.
  double seconds = 0;         // 0: no time limit.
  std::stop_token stop = {};  // Ends the search; the tree keeps its visits.
};

// The number of leaves to gather together in a search of so many visits: many fill the evaluator's
// batches, few base each selection on more results.
int LeavesFor(int64_t visits, int batch);

// Continues the tree's search; calls `on_batch`, if any, after each batch.
void Search(Evaluator& evaluator, SearchTree& tree, const SearchLimits& limits,
            const std::function<void()>& on_batch = {});

// Searches many games at once. A report depends on its game alone, not on the other games, unless a
// time limit ends it. Where the game is over, the report has no moves.
std::vector<SearchReport> SearchMany(Evaluator& evaluator, std::span<const GameSoFar> games,
                                     const TreeOptions& options, const SearchLimits& limits,
                                     const std::function<void()>& on_batch = {});

}  // namespace kibitz::oracles
