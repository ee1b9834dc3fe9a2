// Games that teachers play, themselves against themselves or one against the other, as records: the
// rows of each game say what was played, what the teacher thought best and how good the position
// is.
//
//   PlayGames(teachers, {.games = 1000}, openings, parts, progress);
//
// Game n depends on the seed and n alone: neither on the games beside it nor on how the work is
// cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "oracles/records/part_store.h"
#include "oracles/records/source_games.h"
#include "oracles/records/teacher.h"

namespace kibitz::oracles {

struct PlayOptions {
  int64_t games = 100;
  uint64_t seed = 1;
  int random_plies = 0;  // Made at random after the opening; not in the records.
  // A move is drawn among the teacher's lines, each with its fraction to the power of 1 /
  // temperature, in the first plies of the record; after them the best is played.
  double temperature = 1;
  int temperature_plies = 20;
  int max_plies = 400;  // Of the record; then the game has no result.
  // 0: off. The game is over when one side's chance to win has been at least this in the last
  // plies, as both sides saw it; or when the chance of a draw has.
  double resign_win = 0;
  double draw_chance = 0;
  int64_t part_games = 8;  // In a part.
};
Fields FieldsOf(PlayOptions& options);

// The end positions of games in files, where games go on. Throws Error when there is none.
std::vector<GameSoFar> ReadOpenings(const std::vector<std::string>& paths, Skipped& skipped);

// Who plays: one teacher, or two, who then take turns with the colours in each opening.
struct Players {
  Teacher& first;
  Teacher* second = nullptr;
  int at_once = 8;  // Games at the same time; the records do not depend on it.
};

// Fills the parts that are missing; returns how many positions were asked about. `openings` may be
// empty: the starting position. Progress counts games.
int64_t PlayGames(const Players& players, const PlayOptions& options,
                  std::span<const GameSoFar> openings, const PartStore& parts, Progress& progress);

}  // namespace kibitz::oracles
