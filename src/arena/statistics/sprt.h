// The sequential probability ratio test: are the results likelier with a strength of elo1 than with
// elo0? It ends a match as soon as they tell, with chosen chances of a wrong end.
//
//   const SprtOptions sprt{.elo0 = 0, .elo1 = 5};
//   const double llr = LogLikelihoodRatio(pairs, sprt);
//   if (DecisionOf(llr, sprt) != SprtDecision::kContinue) Use(llr);
//
// The ratio is the generalized one: each hypothesis is given the likeliest distribution of results
// with its strength (Van den Bergh, "Comparing the approximations for the generalized log
// likelihood ratio of a multinomial distribution"). All loops are bounded, whatever the bounds.
#pragma once

#include <string>
#include <string_view>

#include "arena/statistics/elo.h"
#include "base/error.h"

namespace kibitz::arena {

// What elo0 and elo1 are: standard deviations of a game (times 800 / ln 10), or the logistic curve.
enum class EloModel { kNormalized, kLogistic };

struct SprtOptions {
  double elo0 = 0;
  double elo1 = 5;
  double alpha = 0.05;  // The chance to accept elo1 where elo0 is true ...
  double beta = 0.05;   // ... and the reverse.
  EloModel model = EloModel::kNormalized;

  double lower() const;  // At most this: elo0 is accepted.
  double upper() const;  // At least this: elo1 is.
};

// "0,5". The reason is for people.
Result<SprtOptions> ParseSprt(std::string_view text);
// Why the options make no test; "" when they do.
std::string WhyNoSprt(const SprtOptions& options);

// A result that has not occurred counts as a thousandth, so that early ratios are finite.
double LogLikelihoodRatio(const PairCounts& pairs, const SprtOptions& options);
double LogLikelihoodRatio(const GameCounts& games, const SprtOptions& options);

enum class SprtDecision { kContinue, kElo0, kElo1 };
SprtDecision DecisionOf(double llr, const SprtOptions& options);

}  // namespace kibitz::arena
