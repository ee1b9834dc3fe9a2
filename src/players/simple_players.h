// Players without a network: opponents whose strength is known, and a floor for measurements.
#pragma once

#include <string>

#include "oracles/search/negamax.h"
#include "players/player.h"

namespace kibitz::players {

// Any legal move, each as likely as another.
class RandomPlayer final : public Player {
 public:
  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override { return "random"; }
};

struct NegamaxPlayerOptions {
  int depth = 1;  // Plies.
  oracles::Material material = oracles::Material::kTables;
  double temperature = 0;  // Of the draw by softmax(score / 200); 0: the best move.
};

// A search to a fixed depth over a static evaluation.
class NegamaxPlayer final : public Player {
 public:
  explicit NegamaxPlayer(const NegamaxPlayerOptions& options) : options_(options) {}

  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override;

 private:
  NegamaxPlayerOptions options_;
};

}  // namespace kibitz::players
