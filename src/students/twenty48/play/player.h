// The student at play: boards in, moves out.
//
//   Player player("models/twenty48-small", {});
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

// How binned heads become a choice: the chance of the last bin, or the mean of the bins' middles.
enum class BinnedRule { kBestBin, kExpected };

struct PlayerOptions {
  ModelOptions model = {};
  BinnedRule rule = BinnedRule::kBestBin;
  BinningOptions binning = {};  // Of the bins' middles; a checkpoint's own wins.
};
Fields FieldsOf(PlayerOptions& options);

struct Choice {
  Move best = Move::kUp;  // The legal move of the highest score.
  unsigned legal = 0;     // Bits; 0 when the game is over, and then nothing else counts.
  // By IndexOf(move). Of a policy: chances over the legal moves. Of binned heads: what the rule
  // says.
  std::array<float, 4> scores{};
};

class Player {
 public:
  // Throws Error.
  Player(const std::string& path, const PlayerOptions& options);

  const NetConfig& config() const { return model_.config(); }
  Model& model() { return model_; }

  std::vector<Choice> Choose(std::span<const Board> boards);

 private:
  Choice ChoiceOf(const Board& board, const float* logits) const;

  PlayerOptions options_;
  Model model_;
  std::vector<float> middles_;  // Of the bins.
  std::vector<float> logits_;
};

// A move by its scores: the best at temperature 0, else drawn with chances proportional to
// score^(1 / temperature). `draw` is uniform in [0, 1).
Move Drawn(const Choice& choice, double temperature, double draw);

}  // namespace kibitz::twenty48
