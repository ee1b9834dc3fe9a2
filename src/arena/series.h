// Every opening twice with colours swapped: who wins, by player, colour and opening.
//
//   const SeriesResult result = RunSeries(run, {.rounds = 1}, &progress);
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "arena/match.h"

namespace kibitz::arena {

struct SeriesOptions {
  int64_t rounds = 1;    // How often each opening is played twice.
  int64_t openings = 0;  // The first so many; 0: all.
};

struct SeriesResult {
  struct OfOpening {
    std::string name;
    GameCounts counts;  // Of the first player.
  };

  std::array<std::string, 2> names;
  std::array<std::optional<bool>, 2> one_ply;  // As OnePlyOf.
  Tally tally;
  std::vector<OfOpening> openings;
  std::vector<FinishedGame> games;  // With traces, where asked for.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

SeriesResult RunSeries(GameRun& run, const SeriesOptions& options, Progress* progress);

// One JSON line a move: the position, who moved, the probabilities that the player told, and as
// arrows those of at least `min_probability`.
void WriteTrace(const std::string& path, const SeriesResult& result, const GameRun& run,
                double min_probability);

}  // namespace kibitz::arena
