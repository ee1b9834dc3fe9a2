// A teacher labels chess positions: a UCI engine, or a search with a network. Generators of records
// ask for lessons (labels) in batches, from any teacher.
//
//   std::vector<std::optional<Lesson>> lessons = teacher.Teach(games);
//   if (lessons[0]) Use(lessons[0]->best, lessons[0]->wdl);
//
// All values are for the side to move in the position they belong to.
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

// A position on a line: the one after `move`.
struct VariationNode {
  chess::Move move;    // From the node before, or from the root.
  Wdl wdl;             // For the side to move after the move, so the point of view alternates.
  int64_t visits = 0;  // Of this position, below this line's root move.
};

// A root move and its principal variation.
struct Variation {
  int64_t visits = 0;
  double fraction = 0;  // Of the root's visits; the sum over a lesson is max 1.
  double prior = 0;     // Of the policy; equal for all moves where the teacher has none.
  MoverScore score;     // Of the root move, for the side to move at the root; always exact.
  // At least one: nodes[0].move is the root move. The last position may end the game.
  std::vector<VariationNode> nodes;
};

struct Lesson {
  chess::Move best;
  Wdl wdl;           // Of the position in question.
  MoverScore score;  // The same as centipawns or a mate; always exact.
  int depth = 0;
  int64_t nodes = 0;                  // Searched.
  std::vector<Variation> variations;  // Best first: the first one's root move is `best`.
};

class Teacher {
 public:
  virtual ~Teacher() = default;

  // One lesson for the last position of each game, in their order; nothing where there is no legal
  // move. A lesson depends on its game alone, not on the batch or on threads, unless the teacher's
  // options say otherwise. One call at a time; the teacher has threads of its own. Throws Error,
  // also after Ctrl-C.
  virtual std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) = 0;

  // All options that lessons depend on; kept in the records' metadata.
  virtual nlohmann::ordered_json OptionsJson() const = 0;

  // Engines that failed and were restarted; for reports.
  virtual int failures() const { return 0; }
};

}  // namespace kibitz::oracles
