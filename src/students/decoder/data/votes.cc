#include "students/decoder/data/votes.h"

#include <algorithm>

namespace kibitz::decoder {

std::vector<LineComparison> CompareLines(std::span<const VotingLine> lines) {
  std::vector<LineComparison> compared(lines.size());
  for (size_t i = 0; lines.size() > 1 && i < lines.size(); ++i) {
    const auto lead = [&](float VotingLine::*member) {
      float best = lines[i == 0 ? 1 : 0].*member;
      for (size_t other = 0; other < lines.size(); ++other) {
        if (other != i) best = std::max(best, lines[other].*member);
      }
      return lines[i].*member - best;
    };
    compared[i] = {.last_wl = lead(&VotingLine::last_wl),
                   .first_wl = lead(&VotingLine::first_wl),
                   .logit = lead(&VotingLine::logit)};
  }
  return compared;
}

std::vector<float> VotesOf(std::span<const VotingLine> lines, const VoteWeights& weights) {
  const std::vector<LineComparison> compared = CompareLines(lines);
  std::vector<float> votes;
  for (size_t i = 0; i < lines.size(); ++i) {
    const float values = weights.value[0] * lines[i].first_wl + weights.value[1] * lines[i].last_wl;
    const float leads =
        weights.compared[0] * compared[i].last_wl + weights.compared[1] * compared[i].first_wl;
    votes.push_back(lines[i].end_vote + kValueVoteScale * values + kValueVoteScale * leads +
                    weights.compared[2] * compared[i].logit);
  }
  return votes;
}

}  // namespace kibitz::decoder
