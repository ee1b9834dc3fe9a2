// The engine's options, as flags of the command and as UCI options in the chess program.
//
//   EngineOptions options;
//   for (const std::string& line : OptionLines(options)) fmt::print("{}\n", line);
//   const std::string problem = SetOption(options, "Mode", "instinct");  // "" when it was set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "nn/kernels/network_options.h"

namespace kibitz::uci {

enum class Mode : uint8_t {
  kThink,     // Writes variations, then a move.
  kInstinct,  // The policy head's move, without variations.
};

struct EngineOptions {
  nn::NetworkOptions network = {};
  Mode mode = Mode::kThink;
  double temperature = 0;  // Of the move played; 0: the most likely one.
  int max_variations = 0;  // 0: as many as the network wants.
  int max_depth = 0;       // Moves of a variation; 0 likewise.
  int multipv = 1;         // Lines shown.
  bool show_wdl = false;
  int move_overhead = 30;  // Milliseconds kept back from the clock for each move.
  int64_t seed = 0;        // Of the draws at a temperature.
  bool ponder = false;     // Only announced: the chess program decides.
  int hash = 16;           // Accepted and ignored: chess programs insist on setting it.
};

// The flags, without those of the network. Options that only a chess program sets have no flag.
Fields FieldsOf(EngineOptions& options);

// The "option name ..." lines that answer "uci"; the defaults are the present values.
std::vector<std::string> OptionLines(const EngineOptions& options);

// Sets one option. Returns "", or why the value was rejected. Names ignore case.
std::string SetOption(EngineOptions& options, std::string_view name, const std::string& value);

}  // namespace kibitz::uci
