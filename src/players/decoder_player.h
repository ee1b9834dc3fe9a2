// The decoder as a player: by instinct over the game so far, or after writing variations.
//
//   DecoderPlayer player(network, "m.pt", {.max_variations = 3});
#pragma once

#include <memory>
#include <string>

#include "players/player.h"
#include "students/decoder/play/player.h"

namespace kibitz::players {

struct DecoderPlayerOptions {
  bool think = true;                // Write variations, then choose. Else the instinct's move.
  double temperature = 0;           // Of the move played.
  int temperature_moves = 0;        // As InstinctOptions.
  double thinking_temperature = 0;  // Of the moves in the variations.
  int max_variations = 0;           // 0: as many as the network wants.
  int max_depth = 0;                // Moves of a variation; 0 likewise.
  bool legal = true;                // Only legal moves in the variations.
  bool distinct = true;             // No two variations begin with the same move.
  bool history = true;              // By instinct: read the game, not the position alone.
};

class DecoderPlayer final : public Player {
 public:
  DecoderPlayer(std::shared_ptr<decoder::Player> network, std::string name,
                const DecoderPlayerOptions& options);

  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override { return name_; }
  void NewGame() override { reader_.reset(); }

 private:
  Answer Instinct(const Request& request);
  Answer Think(const Request& request, const OnProgress& on_progress);
  // The reader of this game, with what it read before kept; nothing when a game is not to be read.
  decoder::GameReader* Follow(const oracles::GameSoFar& game);
  // Values for the lines behind the first.
  void AddLines(const Request& request, Answer& answer);

  std::shared_ptr<decoder::Player> network_;
  std::string name_;
  DecoderPlayerOptions options_;
  std::unique_ptr<decoder::GameReader> reader_;
  oracles::GameSoFar read_;  // What reader_ has read.
};

}  // namespace kibitz::players
