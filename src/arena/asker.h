// Asks one player about single positions, from several threads: puzzles, test suites, labels.
//
//   Asker asker({.player = "policy-small"}, 2);
//   const players::Answer answer = asker.Ask(piece, {.start = board});
//   if (answer.move) Use(*answer.move);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena/ordered_work.h"
#include "arena/player_table.h"
#include "base/options.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::arena {

struct AskOptions {
  std::string player = {};
  std::optional<int64_t> nodes = {};  // For each position; without any, the player's own limits.
  std::optional<int64_t> depth = {};
  std::optional<int64_t> move_time = {};  // Milliseconds.
  bool one_ply = false;                   // As Contender; off: the bare network is measured.
  uint64_t seed = 1;
};
// All but the seed.
Fields FieldsOf(AskOptions& options);

class Asker {
 public:
  // Checks the player's name. Throws Error.
  Asker(const AskOptions& options, int threads);

  // For the thread of this piece. The position is new to the player: nothing is kept from before. A
  // player that breaks gives no move and is started again.
  players::Answer Ask(const Piece& piece, const oracles::GameSoFar& game, int lines = 1);

  // For the journal.
  Json Describe() const;
  // As OnePlyOf.
  std::optional<bool> one_ply() const { return one_ply_; }

 private:
  AskOptions options_;
  std::optional<bool> one_ply_;
  std::vector<std::unique_ptr<PlayerTable>> tables_;  // By worker.
};

}  // namespace kibitz::arena
