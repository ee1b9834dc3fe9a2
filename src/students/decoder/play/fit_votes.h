// Fits the votes of variations (data/votes.h) to thoughts that the network wrote itself and a
// teacher's judgement of every move: what its own lines and values are worth to the final move.
//
//   std::vector<VoteSample> samples;
//   if (auto sample = VoteSampleOf(player.Think(row.root, options), row))
//   samples.push_back(*sample); const VoteFit fit = FitVotes(samples, start);
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "students/decoder/data/thinking_sequence.h"
#include "students/decoder/data/votes.h"
#include "students/decoder/play/thought.h"

namespace kibitz::decoder {

// A position with a thought and the teacher's view of its moves.
struct VoteSample {
  struct Move {
    TokenId token = 0;
    float logit = 0;  // Before the thought.
    float share = 0;  // Of the teacher's visits; the shares of all moves sum to 1.
    float wl = 0;     // The teacher's, for the side to move.
  };
  std::vector<Move> moves;
  std::vector<VotingLine> lines;
};
// Nothing when no variation ended, or the record has no value of a legal move.
std::optional<VoteSample> VoteSampleOf(const Thought& thought, const SearchRow& row);

// What a network's votes become: line_vote is multiplied by `end_scale`, then its bias gets
// `end_bias` added.
struct VoteFit {
  float end_scale = 1;
  float end_bias = 0;
  VoteWeights weights = {};
};

// Minimises cross-entropy with the shares minus kExpectedWeight times the expected wl, over the
// first 1, 2, ... all variations of each sample. The same samples give the same fit.
inline constexpr double kExpectedWeight = 10;
VoteFit FitVotes(std::span<const VoteSample> samples, const VoteWeights& start);

// How good the moves are that samples lead to: the mean over samples of the teacher's wl of the
// move chosen minus that of its best move.
struct VoteQuality {
  double instinct = 0;
  double voted = 0;
};
VoteQuality QualityOf(std::span<const VoteSample> samples, const VoteFit& fit);

}  // namespace kibitz::decoder
