// Runs a 2048 student: chooses a move for each board.
//
//   Player player({.network = {.path = "models/twenty48-small"}});
//   const std::vector<Choice> choices = player.Choose(boards);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "students/twenty48/data/targets.h"
#include "students/twenty48/play/model.h"

namespace kibitz::twenty48 {

// How binned heads score a move: the probability of the last bin, or the expected bin center.
enum class BinnedRule { kBestBin, kExpected };

struct PlayerOptions {
  nn::NetworkOptions network = {};
  BinnedRule rule = BinnedRule::kBestBin;
};
Fields FieldsOf(PlayerOptions& options);

struct Choice {
  Move best = Move::kUp;  // The legal move of the highest score.
  unsigned legal = 0;     // Bits; 0 when the game is over, and then nothing else is set.
  // By IndexOf(move). Policy: probabilities over the legal moves. Binned heads: by the rule.
  std::array<float, 4> scores{};
};

class Player {
 public:
  // The expected rule needs the binning stored with the weights. Throws Error.
  explicit Player(const PlayerOptions& options);

  const NetConfig& config() const { return model_.config(); }
  Model& model() { return model_; }

  std::vector<Choice> Choose(std::span<const Board> boards);

 private:
  Player(const io::ModelFile& file, const PlayerOptions& options);
  Choice ChoiceOf(const Board& board, const float* logits) const;

  PlayerOptions options_;
  Model model_;
  std::vector<float> centers_;  // Of the bins; empty unless the rule is kExpected.
  std::vector<float> logits_;
};

// A move by its scores: the best at temperature 0, else drawn with probability proportional to
// score^(1 / temperature). `draw` is uniform in [0, 1).
Move Drawn(const Choice& choice, double temperature, double draw);

}  // namespace kibitz::twenty48
