// Parses the commands that a chess program sends to an engine. Unknown words are skipped, as UCI
// asks; malformed input is reported, never guessed.
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
  std::string_view rest;  // The text after the verb; a view into the line.
};

// Starts at the first word that is a command. Accepts any bytes.
Command ParseCommand(std::string_view line);

// "name NAME value VALUE": both may contain spaces.
struct OptionSetting {
  std::string name;
  std::string value;
};
Result<OptionSetting> ParseSetOption(std::string_view rest);

// "startpos moves e2e4 ..." or "fen FEN moves ...": the position after the moves, which must all be
// legal. Castling rights that the pieces do not support are dropped.
Result<chess::Board> ParsePosition(std::string_view rest);

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
  bool infinite = false;
  bool ponder = false;
  std::vector<chess::Move> search_moves;  // Legal; empty: all.
  std::vector<std::string> problems;      // Malformed parts, which were skipped.
};
GoRequest ParseGo(std::string_view rest, const chess::Board& board);

}  // namespace kibitz::uci
