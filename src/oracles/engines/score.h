// An evaluation of a position with the point of view in its type: engines score for the side to
// move, Lichess files for White. Only this file converts between the two.
//
//   MoverScore score = answer.lines[0].score.value();
//   WhiteScore white = ToWhite(score, board.side_to_move());
#pragma once

#include <cstdint>
#include <optional>

#include "games/chess/types.h"

namespace kibitz::oracles {

enum class View : uint8_t { kMover, kWhite };

// Whether the score is exact, or the true one is at least or at most this.
enum class Bound : uint8_t { kExact, kLower, kUpper };

// Mate in so many moves of the mating side. `wins`: by the side the score is for. A side that is
// already mated has {false, 0}, which a signed number could not distinguish from {true, 0}.
struct Mate {
  bool wins = true;
  int moves = 0;

  bool operator==(const Mate&) const = default;
};

// Probabilities in permille; they sum to about 1000, because engines round.
struct WdlPermille {
  int win = 0;
  int draw = 0;
  int loss = 0;

  bool operator==(const WdlPermille&) const = default;
};

// Probabilities for the side to move in the position they belong to.
struct Wdl {
  double win = 0;
  double draw = 0;
  double loss = 0;

  // As the other side sees them.
  Wdl Reversed() const { return {loss, draw, win}; }
  bool operator==(const Wdl&) const = default;
};

template <View view>
struct Score {
  std::optional<int> centipawns;  // Either these ...
  std::optional<Mate> mate;       // ... or a mate.
  Bound bound = Bound::kExact;
  std::optional<WdlPermille> wdl;

  bool operator==(const Score&) const = default;
};

using MoverScore = Score<View::kMover>;
using WhiteScore = Score<View::kWhite>;

WhiteScore ToWhite(const MoverScore& score, chess::Color mover);
MoverScore ToMover(const WhiteScore& score, chess::Color mover);

}  // namespace kibitz::oracles
