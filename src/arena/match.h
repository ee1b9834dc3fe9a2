// Two players over many games: openings played twice with colours swapped, the figures that engine
// testers expect, and the sequential test that ends a match by itself.
//
//   const MatchResult result = RunMatch(run, {.games = 200}, &progress);
//   fmt::print("{}", result.Text());
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arena/game_run.h"
#include "arena/statistics/elo.h"
#include "arena/statistics/sprt.h"

namespace kibitz::arena {

// Results of one player against another, with what they are made of.
class Tally {
 public:
  // In the order of their numbers; games 2n and 2n+1 are a pair. `first` is the player whose
  // results are counted.
  void Add(const FinishedGame& game, size_t first);

  const GameCounts& games() const { return all_; }
  const PairCounts& pairs() const { return pairs_; }
  // Of the first player, with this colour.
  const GameCounts& As(chess::Color color) const { return by_color_[static_cast<size_t>(color)]; }
  // How the games ended.
  const std::map<std::string, int64_t>& ends() const { return ends_; }
  // Games lost because a player broke: the first's, the other's.
  const std::array<int64_t, 2>& failures() const { return failures_; }
  int64_t plies() const { return plies_; }

  // From pairs where there are any, else from games.
  Strength strength() const;
  Json ToJson() const;

 private:
  GameCounts all_;
  PairCounts pairs_;
  std::array<GameCounts, 2> by_color_;
  std::map<std::string, int64_t> ends_;
  std::array<int64_t, 2> failures_{};
  int64_t plies_ = 0;
  std::optional<std::pair<int64_t, double>> half_;  // The number and points of a pair's first game.
};

void AddResult(GameCounts& counts, double points);

struct MatchOptions {
  int64_t games = 200;
  std::optional<SprtOptions> sprt = {};
};

struct MatchResult {
  std::array<std::string, 2> names;
  std::array<std::optional<bool>, 2> one_ply;  // As OnePlyOf.
  Tally tally;
  std::optional<SprtOptions> sprt;
  double llr = 0;  // With sprt.
  PlotLine curve;  // Elo after each pair.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

// The run has two contenders.
MatchResult RunMatch(GameRun& run, const MatchOptions& options, Progress* progress);

// "+12.3 ± 40.1", also where figures are infinite.
std::string ErrorText(double value, double error);
// "+12 =3 -5"
std::string WdlText(const GameCounts& counts);
// Null where the number is not finite.
Json FiniteOrNull(double value);

}  // namespace kibitz::arena
