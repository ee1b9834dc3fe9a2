// Games that a student plays while an oracle looks on and says of every board what it would do.
// Such records teach what the oracle's own games do not show: how to go on where the student's
// mistakes have led (Ross, Gordon and Bagnell, 2011: DAgger).
//
//   PlayLabelledGames(player, judge, {.play = {.search = {.depth = 1}}}, numbers, "raws",
//                   [](const oracles::RawGame& game) { oracles::WriteRawGame("raws", game); });
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "oracles/twenty48/afterstate_value.h"
#include "oracles/twenty48/raw_games.h"
#include "oracles/twenty48/self_play.h"
#include "students/twenty48/play/player.h"

namespace kibitz::twenty48 {

struct LabelledGamesOptions {
  oracles::SelfPlayOptions play;
  double temperature = 0;  // Of the student's moves; 0: its best.
  int side_by_side = 64;   // Games that are played at a time; those under way are lost at a kill.
  int threads = 1;         // Of the oracle.
};

// Plays the games of these numbers and calls `use` with the record of each as it ends, in no
// particular order. A game depends on the seed, its number, the student and the oracle alone: it
// meets the same tiles as the oracle's own. Throws Error when interrupted.
using RecordUser = std::function<void(const oracles::RawGame&)>;
void PlayLabelledGames(Player& player, const oracles::AfterstateValue& judge,
                       const LabelledGamesOptions& options, std::span<const int64_t> numbers,
                       const std::string& folder, const RecordUser& use);

}  // namespace kibitz::twenty48
