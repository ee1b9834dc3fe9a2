// What a chess program says to an engine, read into values. Words that mean nothing are skipped, as
// UCI asks; what is wrong is told, never guessed.
//
//   const Command command = ParseCommand("go movetime 500");
//   const GoRequest request = ParseGo(command.rest, board);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "games/chess/board.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::uci {

enum class Verb : uint8_t {
  kNothing,  // An empty line.
  kUnknown,
  kUci,
  kDebug,
  kIsReady,
  kSetOption,
  kRegister,
  kNewGame,
  kPosition,
  kGo,
  kStop,
  kPonderHit,
  kQuit,
  kBoard,  // "d", for people.
  kHelp,   // "help", likewise.
};

struct Command {
  Verb verb = Verb::kNothing;
  std::string_view rest;  // What stands behind the verb; part of the line.
};

// The first word that is a command begins it. Any bytes are taken.
Command ParseCommand(std::string_view line);

// "name NAME value VALUE": both may have blanks.
struct OptionSetting {
  std::string name;
  std::string value;
};
Result<OptionSetting> ParseSetOption(std::string_view rest);

// The game that "position" tells.
struct PositionRequest {
  oracles::GameSoFar game;
  std::vector<std::string> problems;  // What was left out.
};
// "startpos moves e2e4 ..." or "fen FEN moves ...": every move must be legal. A FEN may have one to
// six fields: what is missing is White to move, no castling, no en passant, "0 1". Castling rights
// that the pieces do not support are dropped, and told.
Result<PositionRequest> ParsePosition(std::string_view rest);

// Times in milliseconds, not below 0; counts at least 1.
struct GoRequest {
  std::optional<int64_t> movetime;
  std::optional<int64_t> white_time;
  std::optional<int64_t> black_time;
  std::optional<int64_t> white_increment;
  std::optional<int64_t> black_increment;
  std::optional<int64_t> moves_to_go;
  std::optional<int64_t> depth;
  std::optional<int64_t> nodes;
  std::optional<int64_t> perft;  // Count moves instead of searching.
  bool infinite = false;
  bool ponder = false;
  std::vector<chess::Move> search_moves;  // Legal; empty: all.
  std::vector<std::string> problems;      // What was wrong and is left out.
};
GoRequest ParseGo(std::string_view rest, const chess::Board& board);

}  // namespace kibitz::uci
