// Ratings by maximum likelihood: the numbers under which the results of all games are likeliest, on
// the scale where 400 points are a score of 10/11.
//
//   const std::vector<Encounter> results = {{.first = 0, .second = 1, .points = 1.5, .games = 2}};
//   const RatingTable table = RatePlayers(2, results);
//   Use(table.players[0].rating, table.players[0].error);
//
// A draw counts as half a win and half a loss, as in Elo's model.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kibitz::arena {

struct Rating {
  double rating = 0;
  double error = 0;  // Half of the 95% interval.
};

// Games of two players whose results may depend on each other, such as a pair on one opening.
struct Encounter {
  size_t first = 0;
  size_t second = 0;
  double points = 0;  // Of the first.
  double games = 1;
};

struct RatingTable {
  std::vector<Rating> players;  // Their mean is 0; errors are relative to that mean.
  // Some players won, or lost, everything against all others: they have no finite rating. Every
  // player was given one drawn game, shared among all others.
  bool with_virtual_draws = false;
};

// Errors come from the spread of the encounters (the sandwich estimator), so that many draws and
// dependent pairs count as they should.
RatingTable RatePlayers(size_t players, std::span<const Encounter> encounters);

// One result against an opponent, or a puzzle, whose rating is known.
struct KnownEncounter {
  double rating = 0;  // Of the opponent.
  double points = 0;
  double games = 1;
};

struct RatingAgainst {
  Rating rating;
  // Everything was won, or everything lost: one draw with an opponent of the mean rating was added,
  // and the rating is a bound rather than an estimate.
  bool with_virtual_draw = false;
};

// Nothing without encounters.
std::optional<RatingAgainst> RateAgainst(std::span<const KnownEncounter> encounters);

// The first player's rating less the second's, where both met the same opponents in the same order:
// luck that they share, such as hard puzzles, cancels out of the error. The error is infinite where
// one of the ratings is a bound. Nothing without encounters.
std::optional<Rating> RatingDifference(std::span<const KnownEncounter> first,
                                       std::span<const KnownEncounter> second);

}  // namespace kibitz::arena
