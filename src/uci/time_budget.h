// How long to think about a move.
#pragma once

#include <chrono>
#include <optional>

#include "games/chess/types.h"
#include "uci/command.h"

namespace kibitz::uci {

// At `soft` the thought is cut off, unless the network has not even seen the position: a move at
// random would cost more than the time. At `hard` whatever is known is played.
struct TimeBudget {
  std::chrono::milliseconds soft{0};
  std::chrono::milliseconds hard{0};

  bool operator==(const TimeBudget&) const = default;
};

// Nothing when there is no limit. movetime is kept to the letter. From a clock a move gets a
// 25th (or its share until the time control) and three quarters of the increment, at most half of
// what is left, and nine tenths before the position is seen; `overhead` is kept back for the way to
// the chess program.
std::optional<TimeBudget> TimeBudgetOf(const GoRequest& request, chess::Color mover,
                                       std::chrono::milliseconds overhead);

}  // namespace kibitz::uci
