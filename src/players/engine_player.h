// Plays what a UCI engine answers.
//
//   EnginePlayer player({.command = "stockfish", .elo = 1500});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oracles/engines/uci_client.h"
#include "players/player.h"

namespace kibitz::players {

struct EngineOptions {
  std::string command;                   // Program, and arguments between blanks.
  std::optional<int64_t> nodes = {};     // For each move, where the request has no limit.
  std::optional<int64_t> depth = {};     // Likewise.
  std::optional<int64_t> movetime = {};  // Milliseconds; likewise. Without any limit: 1000.
  std::optional<int64_t> elo = {};       // Sets UCI_LimitStrength and UCI_Elo.
  std::vector<std::pair<std::string, std::string>> uci = {};  // Further UCI options.
  bool restart = true;  // Once for each request, after a crash.
};

class EnginePlayer final : public Player {
 public:
  // Starts the engine. Throws Error when it cannot be started or lacks an option.
  explicit EnginePlayer(const EngineOptions& options);

  Answer Play(const Request& request, const OnProgress& on_progress = {}) override;
  std::string name() const override;
  void NewGame() override;

 private:
  Answer Ask(const Request& request, const OnProgress& on_progress);
  oracles::Limits LimitsOf(const Request& request) const;

  EngineOptions options_;
  std::unique_ptr<oracles::UciClient> client_;
  int multipv_ = 1;  // As the engine has it now.
};

}  // namespace kibitz::players
