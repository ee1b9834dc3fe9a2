#include "uci/time_budget.h"

#include <algorithm>

namespace kibitz::uci {

std::optional<TimeBudget> TimeBudgetOf(const GoRequest& request, chess::Color mover,
                                       std::chrono::milliseconds overhead) {
  using std::chrono::milliseconds;
  constexpr int64_t kMovesAhead = 25;
  if (request.infinite) return std::nullopt;
  if (request.movetime)
    return TimeBudget{milliseconds(*request.movetime), milliseconds(*request.movetime)};
  const bool white = mover == chess::Color::kWhite;
  const auto clock = white ? request.white_time : request.black_time;
  if (!clock) return std::nullopt;
  const int64_t increment = (white ? request.white_increment : request.black_increment).value_or(0);
  const int64_t left = std::max<int64_t>(*clock - overhead.count(), 0);
  const int64_t moves = std::min(request.moves_to_go.value_or(kMovesAhead), kMovesAhead);
  // The last move before the time control may take all but a little of the clock.
  const int64_t most = moves == 1 ? left * 9 / 10 : left / 2;
  const int64_t share = left / moves + increment * 3 / 4;
  return TimeBudget{milliseconds(std::min(share, most)), milliseconds(left * 9 / 10)};
}

}  // namespace kibitz::uci
