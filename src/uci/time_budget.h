// How long to think about a move.
#pragma once

#include <chrono>
#include <optional>

#include "games/chess/types.h"
#include "uci/command.h"

namespace kibitz::uci {

// At `soft` the search stops, unless the network has not read the position yet: an arbitrary move
// would cost more than the time. At `hard` the engine plays what it has.
struct TimeBudget {
  std::chrono::milliseconds soft{0};
  std::chrono::milliseconds hard{0};

  bool operator==(const TimeBudget&) const = default;
};

// Nothing when there is no limit. movetime is used whole. On a clock a move gets 1/25 of the time
// left (or its share until the time control) and 3/4 of the increment, at most half of the time
// left. `overhead` is subtracted for the communication with the chess program.
std::optional<TimeBudget> TimeBudgetOf(const GoRequest& request, chess::Color mover,
                                       std::chrono::milliseconds overhead);

}  // namespace kibitz::uci
