// What a chess program can set: the options of the protocol, and those of the player behind it.
//
//   EngineOptions options{.player = *players::ParsePlayerName("policy-small")};
//   OptionTable table(options);
//   for (const std::string& line : table.Lines()) Say(line);  // "option name Temperature type ..."
//   std::string reason = table.Set("Temperature", "0.5");     // "" when it was taken
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "players/make_player.h"

namespace kibitz::uci {

struct EngineOptions {
  players::PlayerName player = {};  // Who plays; an empty one: nobody yet.
  int multipv = 1;                  // Lines shown.
  bool show_wdl = false;
  bool verbose_move_stats = false;   // One "info string" a root move, as lc0 writes it.
  int move_overhead = 30;            // Milliseconds kept back from the clock for each move.
  std::optional<int64_t> seed = {};  // Of random draws; nothing: another in each run.
  bool ponder = false;               // Only told to the program: it decides.
  bool limit_strength = false;
  int elo = 0;    // With limit_strength; 0: the player's best.
  int hash = 16;  // Accepted and not used: programs insist on setting it.
};

// The options under their UCI names: those of the player are its keys without underscores, each
// word with a capital ("max_variations" is MaxVariations). Model, WeightsFile and Player name the
// player itself.
class OptionTable {
 public:
  // `options` is borrowed and changed by Set.
  explicit OptionTable(EngineOptions& options);
  ~OptionTable();

  // The lines that tell a chess program what it can set; the defaults are the present values.
  std::vector<std::string> Lines() const;
  // The reason when it is not taken, "" when it is. Names are compared without case.
  std::string Set(std::string_view name, const std::string& value);
  // How strength is limited, for people; "" when it is not.
  std::string Strength() const;

 private:
  struct Entry;

  std::vector<Entry> Entries() const;
  void AddStrength(const players::EloRange& range, std::vector<Entry>& entries) const;
  std::string SetPlayer(const std::string& text);
  std::string SetPlayerOption(const std::string& key, const std::string& value);

  EngineOptions& options_;
  std::unique_ptr<players::PlayerMaker> maker_;  // Knows the player's options; none: nobody plays.
};

}  // namespace kibitz::uci
