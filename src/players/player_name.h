// How players are named everywhere: KIND:PATH?key=value&key=value.
//
//   const auto name = ParsePlayerName("decoder:m.pt?think=1&temperature=0.1");
//   if (name) Use(name->kind);  // "decoder"
//
// The kind may be left out where the path tells it (make_player.h). '%' and two hexadecimal digits
// stand for a byte, so that any path and value can be written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace kibitz::players {

struct PlayerName {
  std::string kind = {};  // "": to be told from the path.
  std::string path = {};
  std::vector<std::pair<std::string, std::string>> options = {};  // In their order.

  bool operator==(const PlayerName&) const = default;
};

// The names of all kinds, for telling "random" from a path.
const std::vector<std::string>& KindNames();

Result<PlayerName> ParsePlayerName(std::string_view text);
// The text that ParsePlayerName reads back.
std::string ToText(const PlayerName& name);

}  // namespace kibitz::players
