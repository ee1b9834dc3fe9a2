// Work split over torch's own threads. Pieces do not depend on the number of threads, so neither do
// results.
#pragma once

#include <cstdint>
#include <functional>

namespace kibitz::learn {

// Calls task(i) for every i below count, each on any free thread. Inside, gradients are off and
// matrix products use the calling thread alone.
void ForEachTask(int64_t count, const std::function<void(int64_t)>& task);

// The same for pieces [begin, end) of a range, each `piece` long but the last.
void ForEachPiece(int64_t size, int64_t piece, const std::function<void(int64_t, int64_t)>& task);

}  // namespace kibitz::learn
