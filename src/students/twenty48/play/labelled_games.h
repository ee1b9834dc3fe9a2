// Games that a student plays and an oracle labels: the records hold the oracle's move and values
// for every board. They show what the oracle's own games do not: how to play on after the student's
// mistakes (DAgger; Ross, Gordon and Bagnell, 2011).
//
//   PlayLabelledGames(player, evaluation, {.play = {.search = {.depth = 1}}}, numbers, "raws",
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
  int side_by_side = 64;   // Games played at a time; a kill loses those in progress.
  int threads = 1;         // Of the oracle.
};

// Plays the games of these numbers and calls `use` with the record of each as it ends, in no
// particular order. A game depends on the seed, its number, the student and the oracle alone; its
// random tiles are those of the oracle's own game. Throws Error when interrupted.
using RecordUser = std::function<void(const oracles::RawGame&)>;
void PlayLabelledGames(Player& player, const oracles::AfterstateValue& evaluation,
                       const LabelledGamesOptions& options, std::span<const int64_t> numbers,
                       const std::string& folder, const RecordUser& use);

}  // namespace kibitz::twenty48
