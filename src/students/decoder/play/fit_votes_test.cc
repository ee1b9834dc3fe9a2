#include "students/decoder/play/fit_votes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace kibitz::decoder {
namespace {

// Positions of five moves and three lines. The last values of the lines show the teacher's with
// little noise, the instinct with much; the rest tells nothing.
std::vector<VoteSample> Samples(int count, uint64_t seed) {
  Rng rng({.seed = seed});
  std::vector<VoteSample> samples;
  for (int i = 0; i < count; ++i) {
    VoteSample sample;
    double sum = 0;
    for (TokenId token = 0; token < 5; ++token) {
      const auto wl = static_cast<float>(std::tanh(rng.Normal() / 2));
      sample.moves.push_back({.token = token,
                              .logit = 2 * wl + static_cast<float>(rng.Normal()),
                              .share = std::exp(4 * wl),
                              .wl = wl});
      sum += sample.moves.back().share;
    }
    for (auto& move : sample.moves) move.share /= static_cast<float>(sum);
    for (size_t line = 0; line < 3; ++line) {
      const VoteSample::Move& move = sample.moves[line];
      sample.lines.push_back({.move = move.token,
                              .end_vote = static_cast<float>(rng.Normal()),
                              .first_wl = static_cast<float>(rng.Normal() / 2),
                              .last_wl = move.wl + static_cast<float>(rng.Normal()) / 10,
                              .logit = move.logit});
    }
    samples.push_back(sample);
  }
  return samples;
}

TEST(FitVotesTest, FindsWhatTheLinesAreWorth) {
  const VoteFit fit = FitVotes(Samples(2000, 1), {});
  const std::vector<VoteSample> others = Samples(2000, 2);
  const VoteQuality before = QualityOf(others, {});
  const VoteQuality after = QualityOf(others, fit);
  EXPECT_EQ(before.instinct, after.instinct);
  EXPECT_LT(after.voted, 0);
  EXPECT_GT(after.voted, before.voted / 3);
  // What tells nothing weighs nothing.
  EXPECT_NEAR(fit.end_scale, 0, 0.1);
  const float last = fit.weights.value[1] + fit.weights.compared[0];
  EXPECT_GT(kValueVoteScale * last, 2);
  EXPECT_LT(std::abs(fit.weights.value[0] + fit.weights.compared[1]), last / 10);
}

TEST(FitVotesTest, TheSameSamplesGiveTheSameFit) {
  const std::vector<VoteSample> samples = Samples(50, 3);
  const VoteFit one = FitVotes(samples, {});
  const VoteFit two = FitVotes(samples, {});
  EXPECT_EQ(one.end_scale, two.end_scale);
  EXPECT_EQ(one.weights.compared, two.weights.compared);
}

TEST(VotesTest, ALineIsComparedWithTheBestOther) {
  const std::vector<VotingLine> lines = {
      {.move = 1, .end_vote = 0.5, .first_wl = 0.5, .last_wl = -0.5, .logit = 1},
      {.move = 2, .first_wl = 0.25, .last_wl = 0.25, .logit = 3},
      {.move = 3, .first_wl = 0, .last_wl = 0, .logit = 0}};
  const std::vector<LineComparison> compared = CompareLines(lines);
  EXPECT_EQ(compared[0].last_wl, -0.75F);
  EXPECT_EQ(compared[0].first_wl, 0.25F);
  EXPECT_EQ(compared[0].logit, -2);
  EXPECT_EQ(compared[1].last_wl, 0.25F);
  EXPECT_EQ(compared[2].logit, -3);
  EXPECT_EQ(CompareLines({lines.data(), 1})[0].last_wl, 0);
  EXPECT_EQ(VotesOf(lines, {.value = {0, 1}, .compared = {1, 0, 2}})[0],
            0.5F + kValueVoteScale * -0.5F + kValueVoteScale * -0.75F + 2 * -2.0F);
}

}  // namespace
}  // namespace kibitz::decoder
