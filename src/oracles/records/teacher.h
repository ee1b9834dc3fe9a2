// Who knows about chess positions: an engine, or a search with a network. Generators of records ask
// for lessons in batches and do not care who gives them.
//
//   std::vector<std::optional<Lesson>> lessons = teacher.Teach(games);
//   if (lessons[0]) Use(lessons[0]->best, lessons[0]->wdl);
//
// All values state whose view they are from: the side to move in the position they belong to.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "games/chess/types.h"
#include "oracles/engines/score.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::oracles {

// A position on a line: the one that `move` leads to.
struct VariationNode {
  chess::Move move;    // From the node before, or from the root.
  Wdl wdl;             // For the side to move after the move, so the views alternate.
  int64_t visits = 0;  // Of this position, below this line's root move.
};

// A root move and how the game would go on.
struct Variation {
  int64_t visits = 0;
  double fraction = 0;  // Of the root's visits; the fractions of a lesson sum to 1 at most.
  double prior = 0;     // Of the policy; a teacher without one says the same for all.
  MoverScore score;     // Of the root move, for the side to move at the root; always exact.
  // At least one: nodes[0].move is the root move. May end with a position where the game is over.
  std::vector<VariationNode> nodes;
};

struct Lesson {
  chess::Move best;
  Wdl wdl;           // Of the position asked about.
  MoverScore score;  // The same as centipawns or a mate; always exact.
  int depth = 0;
  int64_t nodes = 0;                  // Searched.
  std::vector<Variation> variations;  // Best first: the first one's root move is `best`.
};

class Teacher {
 public:
  virtual ~Teacher() = default;

  // Lessons in the order of the games, about the position each has come to; nothing where there is
  // no legal move. A lesson depends on its game alone, not on the others or on threads. One call at
  // a time; the teacher spreads the work itself. Throws Error, also after Ctrl-C.
  virtual std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) = 0;

  // Everything the lessons depend on; kept in the records' metadata.
  virtual nlohmann::ordered_json OptionsJson() const = 0;

  // Times that something broke and was started anew; told in reports.
  virtual int failures() const { return 0; }
};

}  // namespace kibitz::oracles
