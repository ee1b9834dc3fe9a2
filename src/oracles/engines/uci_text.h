// Parses the lines that a UCI engine writes. Unknown parts of a line are skipped, as UCI demands;
// an invalid number leaves its field unset.
//
//   Info info = ParseInfo("info depth 8 score cp 31 pv e2e4 e7e5", board);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "games/chess/board.h"
#include "games/chess/move_text.h"
#include "oracles/engines/score.h"

namespace kibitz::oracles {

// "option name Hash type spin default 16 min 1 max 33554432".
struct UciOption {
  enum class Type : uint8_t { kCheck, kSpin, kCombo, kButton, kString };

  std::string name;
  Type type = Type::kString;
  std::string default_value = {};   // "" also for <empty>.
  std::optional<int64_t> min = {};  // Of a spin.
  std::optional<int64_t> max = {};
  std::vector<std::string> choices = {};  // Of a combo.
};

// Nothing for a line that is no option with a known type.
std::optional<UciOption> ParseOption(std::string_view line);

// Why the option does not allow this value; "" when it does.
std::string WhyNot(const UciOption& option, std::string_view value);

// One "info" line.
struct Info {
  std::optional<int> depth;
  std::optional<int> selective_depth;
  std::optional<int64_t> nodes;
  std::optional<int64_t> nodes_per_second;
  std::optional<int64_t> milliseconds;
  std::optional<int> multipv;       // The line's rank, from 1.
  std::optional<MoverScore> score;  // For the side to move in the position asked about.
  std::vector<chess::Move> pv;      // Legal move by move.
  int pv_beyond = 0;                // Words of the pv after its legal part.
  std::string text;                 // After "string".
};

// `board` is the position asked about.
Info ParseInfo(std::string_view line, const chess::Board& board);

// "bestmove e2e4 ponder e7e5".
struct BestMove {
  std::optional<chess::Move> move;  // Nothing for "(none)", "0000" and the like.
  std::optional<chess::Move> ponder;
};

// The reason is that the move is not legal.
Result<BestMove> ParseBestMove(std::string_view line, const chess::Board& board);

}  // namespace kibitz::oracles
