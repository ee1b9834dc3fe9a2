// The engine's side of UCI: commands in, lines out.
//
//   Engine engine(options, make_player, [](std::string_view line) { return Print(line); });
//   while (auto line = input.Next()) {
//     if (!engine.Handle(*line)) break;
//   }
//
// "uci" is answered at once; the player is loaded by the first "isready" or "go". Commands never
// wait for a search: while one runs, "isready" is answered at once, and "position" and "setoption"
// hold from the next "go" on. What cannot be understood is told by "info string" and changes
// nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "games/chess/board.h"
#include "uci/options.h"
#include "uci/output.h"
#include "uci/searcher.h"

namespace kibitz::uci {

class Engine {
 public:
  // `write` is called from several threads, one at a time.
  Engine(EngineOptions options, MakePlayer make, Output::Write write);

  // Loads the player now; `on_failure` gets the message when it cannot be used, on another thread.
  void Load(std::function<void(const std::string&)> on_failure);

  // Takes one line, any bytes. False when the conversation is over: "quit", or nobody listens.
  bool Handle(std::string_view line);

  // The end of the input: stops the search, whose move is still answered, and waits so long for the
  // network; false when it is still at work, such as loading.
  bool Finish(std::chrono::milliseconds patience);

  const EngineOptions& options() const { return options_; }

 private:
  void Introduce();
  void SetPosition(std::string_view rest);
  void Go(std::string_view rest);
  void Set(std::string_view rest);
  void SetDebug(std::string_view rest);
  void CountMoves(int depth);
  void ShowBoard();
  void ShowHelp();

  EngineOptions options_;
  OptionTable table_;
  std::optional<oracles::GameSoFar> game_ =
      oracles::GameSoFar{};  // Nothing: "position" was refused.
  uint64_t seed_;            // Of this run, where none is set.
  uint64_t searches_ = 0;    // So far. Not per game, or all games at a temperature would be alike.
  bool new_game_ = false;    // "ucinewgame" came since the last search.
  bool debug_ = false;
  Output output_;
  Searcher searcher_;
};

}  // namespace kibitz::uci
