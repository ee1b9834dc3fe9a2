// How the variations of a thought vote on its move: each adds a number to the logit of its first
// move (NetConfig::line_votes, value_votes, compared_votes).
//
//   std::vector<float> votes = VotesOf(lines, weights);       // One for each line.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

// wl is at most 1 and votes are some units of a logit large: weights of this scale learn in time.
inline constexpr float kValueVoteScale = 16;

// A variation that has ended.
struct VotingLine {
  TokenId move = 0;    // Its first.
  float end_vote = 0;  // line_vote of its end_var.
  // The wl of its first and of its last move as written, for the side that moves at the root.
  float first_wl = 0;
  float last_wl = 0;
  float logit = 0;  // Of its first move before the thought.
};

// What a line has more than the best other line of the thought; all 0 for a line alone.
struct LineComparison {
  float last_wl = 0;
  float first_wl = 0;
  float logit = 0;
};
std::vector<LineComparison> CompareLines(std::span<const VotingLine> lines);

struct VoteWeights {
  std::array<float, 2> value = {};     // Of first_wl and last_wl, times kValueVoteScale.
  std::array<float, 3> compared = {};  // In the order of LineComparison; the wl times the scale.
};

std::vector<float> VotesOf(std::span<const VotingLine> lines, const VoteWeights& weights);

}  // namespace kibitz::decoder
