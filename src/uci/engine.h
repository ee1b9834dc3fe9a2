// The engine's side of UCI: handles commands and writes replies.
//
//   Engine engine(options, LoadDecoder, [](std::string_view line) { return Print(line); });
//   while (auto line = input.Next()) {
//     if (!engine.Handle(*line)) break;
//   }
//
// "uci" is answered at once; the first "isready" or "go" loads the network. Commands never wait for
// a search: while one runs, "isready" is answered at once, and "position" and "setoption" apply
// from the next "go". A command that cannot be parsed is reported by "info string" and changes
// nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "games/chess/board.h"
#include "uci/options.h"
#include "uci/output.h"
#include "uci/searcher.h"
#include "uci/thinker.h"

namespace kibitz::uci {

class Engine {
 public:
  // `write` is called from several threads, one at a time.
  Engine(EngineOptions options, LoadThinker load, Output::Write write);

  // Handles one line of any bytes. False after "quit" and when the output is closed.
  bool Handle(std::string_view line);

  // At the end of the input: stops the search, which still answers with a move, and waits at most
  // `patience` for the worker. False when it is still busy, for example loading.
  bool Finish(std::chrono::milliseconds patience);

  const chess::Board& board() const { return board_; }
  const EngineOptions& options() const { return options_; }

 private:
  void Introduce();
  void SetPosition(std::string_view rest);
  void Go(std::string_view rest);
  void Set(std::string_view rest);
  void SetDebug(std::string_view rest);
  void ShowBoard();
  void ShowHelp();

  EngineOptions options_;
  chess::Board board_;
  uint64_t searches_ =
      0;  // So far. Not reset per game, or all games at a temperature would be the same.
  bool debug_ = false;
  Output output_;
  Searcher searcher_;
};

}  // namespace kibitz::uci
