// Plays the move that a network finds most likely at first sight, or draws one: no search.
//
//   InstinctPlayer player(network, {.temperature = 0.5});
#pragma once

#include <memory>
#include <string>

#include "oracles/search/evaluator.h"
#include "players/player.h"

namespace kibitz::players {

struct InstinctOptions {
  double temperature = 0;  // 0: the most likely move.
  int temperature_moves =
      0;  // The temperature falls to 0 on a line over so many moves; 0: it stays.
};

// The temperature at this move of the game. `fullmove` counts from 1.
double TemperatureAt(double temperature, int temperature_moves, int fullmove);

class InstinctPlayer final : public Player {
 public:
  InstinctPlayer(std::shared_ptr<oracles::Evaluator> network, const InstinctOptions& options);

  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override { return network_->name(); }

 private:
  std::shared_ptr<oracles::Evaluator> network_;
  InstinctOptions options_;
};

// The value of a position as an evaluation tells it.
oracles::Wdl WdlOf(const oracles::Evaluation& evaluation);

// One line for each of these root moves, with the value of the position behind it: by the rules
// where the game ends there, else by the network. Counts the positions evaluated in `nodes`.
std::vector<Line> LinesAfter(const oracles::GamePath& game, const std::vector<chess::Move>& moves,
                             oracles::Evaluator& network, int64_t& nodes);

}  // namespace kibitz::players
