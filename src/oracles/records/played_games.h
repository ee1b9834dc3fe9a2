// Records of games that teachers play, against themselves or each other: each row has the move
// played, the teacher's best move and the value of the position.
//
//   PlayGames(players, {.games = 1000}, openings, parts, progress);
//
// Game n depends on the seed and n alone, not on the batch or the parts.
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
  int random_plies = 0;  // Random moves after the opening; not in the records.
  // A move is drawn among the teacher's lines, each with its fraction to the power of 1 /
  // temperature, in the first plies of the record; after them the best is played.
  double temperature = 1;
  int temperature_plies = 20;
  int max_plies = 400;  // Of the record; then the game has no result.
  // Adjudication, 0: off. Ends the game when one side's win probability, or the draw probability,
  // has been at least this over the last plies, for both sides.
  double resign_win = 0;
  double draw_chance = 0;
  int64_t part_games = 8;  // In a part.
};
Fields FieldsOf(PlayOptions& options);

// The last positions of games in files, where the game is not over. Throws Error without one.
std::vector<GameSoFar> ReadOpenings(const std::vector<std::string>& paths, SkipCounter& skipped);

// One teacher, or two, who then alternate colours in each opening.
struct Players {
  Teacher& first;
  Teacher* second = nullptr;
  int at_once = 8;  // Games in parallel; does not change the records.
};

// Writes the missing parts; returns the number of positions searched. Empty `openings`: the
// starting position. Progress counts games.
int64_t PlayGames(const Players& players, const PlayOptions& options,
                  std::span<const GameSoFar> openings, const PartStore& parts, Progress& progress);

}  // namespace kibitz::oracles
