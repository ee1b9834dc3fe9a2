// Openings by name and ECO code, written down for this project: the lines a player would know.
//
//   for (const NamedOpening& opening : NamedOpenings()) Use(opening.eco, opening.name);
//   const NamedOpening* known = OpeningOf(game);       // The longest line that the game followed.
#pragma once

#include <span>
#include <string_view>

#include "oracles/engines/uci_client.h"

namespace kibitz::arena {

struct NamedOpening {
  std::string_view eco;    // "C65"
  std::string_view name;   // "Ruy Lopez: Berlin Defence"
  std::string_view moves;  // SAN from the starting position: "e4 e5 Nf3 Nc6 Bb5 Nf6"
};

std::span<const NamedOpening> NamedOpenings();

// The opening's moves as a game.
oracles::GameSoFar GameOf(const NamedOpening& opening);

// The named position that the game reached last, by whatever order of moves; null when it reached
// none, or did not begin at the usual start.
const NamedOpening* OpeningOf(const oracles::GameSoFar& game);

}  // namespace kibitz::arena
