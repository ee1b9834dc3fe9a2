// Plays by Monte Carlo tree search with any network.
//
//   SearchPlayer player(network, {.nodes = 800});
#pragma once

#include <memory>
#include <string>

#include "oracles/search/evaluator.h"
#include "oracles/search/tree.h"
#include "players/player.h"

namespace kibitz::players {

struct SearchOptions {
  int64_t nodes = 800;        // Visits of the root, where the request has no limit of its own.
  double temperature = 0;     // Of the draw by visits; 0: the most visited move.
  int temperature_moves = 0;  // As InstinctOptions.
  oracles::TreeOptions tree = {.leaves = 0};  // 0: as many as fit the network and the nodes.
};

class SearchPlayer final : public Player {
 public:
  SearchPlayer(std::shared_ptr<oracles::Evaluator> network, const SearchOptions& options);

  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override { return "search with " + network_->name(); }
  void NewGame() override { tree_.reset(); }

 private:
  // The tree of this game: what is known from the moves before is kept.
  void Follow(const oracles::GameSoFar& game, int leaves);
  Answer AnswerOf(const Request& request, const oracles::SearchReport& report) const;

  std::shared_ptr<oracles::Evaluator> network_;
  SearchOptions options_;
  oracles::GameSoFar game_;  // That the tree has come to.
  int leaves_ = 0;           // Of the tree.
  std::unique_ptr<oracles::SearchTree> tree_;
};

}  // namespace kibitz::players
