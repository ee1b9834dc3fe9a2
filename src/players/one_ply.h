// Looks one ply ahead for a player: takes a mate in one, and does not draw a won game by stalemate,
// repetition or the fifty-move rule when another move is at hand.
//
//   std::unique_ptr<Player> player = WithOnePlyRule(std::move(network));
//
// Networks without search do not see these ends. The rule is on by default in play; measurements of
// the bare network turn it off (one_ply=0) and say so.
#pragma once

#include <memory>

#include "players/player.h"

namespace kibitz::players {

std::unique_ptr<Player> WithOnePlyRule(std::unique_ptr<Player> player);

// What the rule makes of an answer: `answer` itself, or another move with a remark.
Answer AfterOnePlyRule(const Request& request, Answer answer);

}  // namespace kibitz::players
