// Puzzles with known solutions and ratings: how many a player solves, by rating and theme, and the
// rating that this is worth.
//
//   const std::vector<Puzzle> puzzles = LoadPuzzles({"lichess_db_puzzle.csv"}, {}, skipped);
//   const PuzzleResult result = RunPuzzles(puzzles, asker, run, settings, &progress);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arena/asker.h"
#include "arena/game_run.h"
#include "arena/statistics/ratings.h"
#include "base/skip_counter.h"

namespace kibitz::arena {

struct Puzzle {
  std::string id;
  oracles::GameSoFar game;            // With the opponent's first move, where there is one.
  std::vector<chess::Move> solution;  // The player's moves and the replies in turn.
  double rating = 0;
  std::vector<std::string> themes;
};

enum class FirstMove {
  kAuto,      // An even number of moves: the opponent's.
  kOpponent,  // As Lichess has it.
  kSolver,
};

struct PuzzleOptions {
  FirstMove first_move = FirstMove::kAuto;
  int64_t limit = 0;  // The first so many; 0: all.
  double min_rating = 0;
  double max_rating = 1e9;
};
Fields FieldsOf(PuzzleOptions& options);

// CSV with a header that names FEN, Moves and Rating, and maybe PuzzleId and Themes, in any order
// and case; without a header the columns are FEN, Moves, Rating, or those of Lichess. Compressed
// files too. Rows that are no puzzles are skipped and counted. Throws Error.
std::vector<Puzzle> LoadPuzzles(const std::vector<std::string>& paths, const PuzzleOptions& options,
                                SkipCounter& skipped);

struct SolvedCounts {
  int64_t puzzles = 0;
  int64_t exact = 0;     // The whole line as it stands.
  int64_t any_mate = 0;  // The same, or another mate on the way.
};

struct PuzzleResult {
  std::string player;
  std::optional<bool> one_ply = {};  // As OnePlyOf.
  SolvedCounts all;
  std::map<int, SolvedCounts> bands;  // By the lowest rating of 200 points.
  std::map<std::string, SolvedCounts> themes;
  std::optional<RatingAgainst> rating;  // Any mate counts.
  std::optional<RatingAgainst> exact_rating;
  int64_t failures = 0;  // Puzzles on which the player broke.
  SkipCounter skipped;
  std::vector<KnownEncounter> encounters;  // Each puzzle, in order; any mate counts.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

// Two players on the same puzzles, puzzle by puzzle.
struct PuzzleComparison {
  int64_t only_first = 0;  // Puzzles that the first alone solved, ...
  int64_t only_second = 0;
  double p_value = 1;                   // ... and McNemar's exact test of that.
  std::optional<Rating> rating_beyond;  // The first's rating less the second's.

  PuzzleComparison(const PuzzleResult& first, const PuzzleResult& second);
  Json ToJson() const;
  std::string Text() const;
};

PuzzleResult RunPuzzles(const std::vector<Puzzle>& puzzles, Asker& asker, const RunOptions& run,
                        const Json& settings, Progress* progress);

}  // namespace kibitz::arena
