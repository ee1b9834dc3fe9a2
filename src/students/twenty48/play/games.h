// Many games side by side, and their statistics. Game n depends on the seed and n alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "games/twenty48/spawn.h"
#include "oracles/twenty48/expectimax.h"
#include "students/twenty48/play/player.h"

namespace kibitz::twenty48 {

struct GamesOptions {
  int64_t games = 1000;
  uint64_t seed = 1;
  double temperature = 0;
  int side_by_side = 500;  // Games played at a time; more make larger products.
};

// The games of a student, in order of their numbers. Calls `see` with every position and choice, in
// no particular order. Throws Error when interrupted.
using ChoiceListener = std::function<void(const Board&, const Choice&)>;
std::vector<Game> PlayGames(Player& player, const GamesOptions& options,
                            const ChoiceListener& see = {});

// The games of an expectimax, one at a time on each thread.
std::vector<Game> PlayGames(const oracles::AfterstateValue& evaluation,
                            const oracles::ExpectimaxOptions& search, const GamesOptions& options,
                            int threads);

struct GameFigures {
  int64_t games = 0;
  int64_t moves = 0;
  double mean = 0;
  double error = 0;  // Half of the 95% interval of the mean.
  double median = 0;
  int64_t best = 0;
  std::map<int64_t, double> reached;  // Share of the games, by tile from 512 to 65536.
};
GameFigures FiguresOf(std::span<const Game> games);

}  // namespace kibitz::twenty48
