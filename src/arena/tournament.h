// Many players: every two of them meet (round-robin), or the first meets all others (gauntlet). One
// table of ratings, maximum likelihood over all games. And the ladder, which finds one player's
// rating against an engine whose strength can be set.
//
//   const TournamentResult result = RunTournament(run, {.rounds = 10}, &progress);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arena/match.h"
#include "arena/statistics/ratings.h"

namespace kibitz::arena {

enum class TournamentKind { kRoundRobin, kGauntlet };

struct TournamentOptions {
  TournamentKind kind = TournamentKind::kRoundRobin;
  int64_t rounds = 10;  // Pairs of games between two players.
  // The rating of the first player, where it is known; the others are relative to it.
  std::optional<double> anchor = {};
};

struct TournamentResult {
  struct Standing {
    std::string name;
    GameCounts counts;
    Rating rating;
    int64_t failures = 0;
    std::optional<bool> one_ply;  // As OnePlyOf.
  };
  std::vector<Standing> standings;             // The strongest first.
  std::vector<std::vector<GameCounts>> cross;  // By places in `standings`, of the row's player.
  bool with_virtual_draws = false;             // As RatingTable.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

TournamentResult RunTournament(GameRun& run, const TournamentOptions& options, Progress* progress);

struct LadderOptions {
  std::vector<double> steps;  // Ratings of contenders 1, 2, ..., in rising order.
  int64_t batch = 4;          // Pairs of games before the next step is chosen.
  int64_t max_games = 400;
  double error = 50;  // Ends when half of the 95% interval is no larger.
};

struct LadderResult {
  struct Step {
    double rating = 0;
    GameCounts counts;  // Of the player.
  };
  std::string name;
  std::optional<bool> one_ply;  // As OnePlyOf.
  std::vector<Step> steps;
  std::optional<RatingAgainst> rating;
  PlotLine curve;  // The rating after each batch.
  int64_t failures = 0;
  bool enough = false;  // The error is as small as asked for.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

// Contender 0 is the player, the others are the steps. The next step is the one nearest to what is
// known of the rating: there a game tells most.
LadderResult RunLadder(GameRun& run, const LadderOptions& options, Progress* progress);

}  // namespace kibitz::arena
