// The search part of bench mcts.
#pragma once

#include "bench/bench.h"

namespace kibitz::bench {

// Searches with the network maia-1500 of the data folder: one tree, and many at once. Says so and
// does nothing where the network is not there.
void ReportSearches(Bench& bench);

}  // namespace kibitz::bench
