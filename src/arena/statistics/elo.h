// How much stronger one player is than another, from the results of their games, as engine testers
// report it.
//
//   const PairCounts pairs{.by_points = {3, 10, 40, 12, 5}};
//   const Strength strength = StrengthOf(pairs);
//   Use(strength.elo, strength.elo_error, strength.los);
//
// Games of a pair share an opening with colours swapped, so their results depend on each other:
// pairs, not games, are what the errors are computed from (the pentanomial model).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kibitz::arena {

// The 97.5% quantile of the normal distribution: half of a 95% interval in standard deviations.
inline constexpr double kNormal95 = 1.959963984540054;

// Of the first player.
struct GameCounts {
  int64_t wins = 0;
  int64_t draws = 0;
  int64_t losses = 0;

  int64_t games() const { return wins + draws + losses; }
  double points() const { return static_cast<double>(wins) + 0.5 * static_cast<double>(draws); }
  bool operator==(const GameCounts&) const = default;
};

// Pairs of games by the first player's points in them.
struct PairCounts {
  std::array<int64_t, 5> by_points{};  // 0, 1/2, 1, 3/2, 2 points.
  int64_t win_and_loss = 0;  // Those of 1 point that were a win and a loss, not two draws.

  int64_t pairs() const;
  bool operator==(const PairCounts&) const = default;
};

// `first` and `second` are the points of the two games: 0, 0.5 or 1.
void AddPair(PairCounts& pairs, double first, double second);

// The logistic curve: an advantage of 400 Elo scores 10/11.
double EloOfScore(double score);  // Infinite at 0 and 1.
double ScoreOfElo(double elo);

// Errors are halves of 95% intervals. Where all results are the same, Elo is infinite or 0 and its
// error is not a number.
struct Strength {
  double score = 0.5;  // Points per game, in [0, 1].
  double elo = 0;
  double elo_error = 0;
  double normalized_elo = 0;  // Score in standard deviations of a game, times 800 / ln 10.
  double normalized_elo_error = 0;
  double los = 0.5;  // Likelihood of superiority: that the first player is the stronger one.
};

// From single games (the trinomial model), or from pairs. Without any, all figures are those of an
// even score with errors that are not numbers.
Strength StrengthOf(const GameCounts& games);
Strength StrengthOf(const PairCounts& pairs);

// Share of pairs of 1 point.
double DrawRatio(const PairCounts& pairs);
// Pairs won to pairs lost; infinite without a lost one, not a number with neither.
double PairsRatio(const PairCounts& pairs);

}  // namespace kibitz::arena
