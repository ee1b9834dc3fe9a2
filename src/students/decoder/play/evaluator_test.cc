#include "students/decoder/play/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "games/chess/movegen.h"
#include "oracles/search/search.h"

namespace kibitz::decoder {
namespace {

NetConfig SmallConfig() {
  NetConfig config;
  config.embed_dim = 64;
  config.num_heads = 2;
  config.num_layers = 2;
  config.d_ff = 96;
  config.max_seq_len = 128;
  return config;
}

TEST(DecoderEvaluatorTest, TellsWhatThePlayerPredicts) {
  const auto player = Player::Random(SmallConfig(), 3, {.threads = 1});
  DecoderEvaluator evaluator(Player::Random(SmallConfig(), 3, {.threads = 1}), "random");
  const oracles::GamePath path((chess::Board()));
  const oracles::Question question(path, chess::LegalMoves(path.last()));
  oracles::Evaluation answer;
  evaluator.Evaluate(std::span(&question, 1), std::span(&answer, 1));
  const Prediction prediction = player->Predict(path.last(), {.value = true});
  EXPECT_FLOAT_EQ(answer.q, prediction.value->wl);
  EXPECT_FLOAT_EQ(answer.draw, std::min(prediction.value->d, 1 - std::abs(answer.q)));
  ASSERT_EQ(answer.priors.size(), 20U);
  for (const Candidate& candidate : prediction.candidates) {
    for (size_t i = 0; i < 20; ++i) {
      if (question.moves()[i] != candidate.move) continue;
      EXPECT_NEAR(answer.priors[i], candidate.probability, 1e-5);
    }
  }
}

TEST(DecoderEvaluatorTest, ChancesSumToOneAtMost) {
  bool promised_more = false;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const oracles::GamePath path((chess::Board()));
    const oracles::Question question(path, chess::LegalMoves(path.last()));
    DecoderEvaluator evaluator(Player::Random(SmallConfig(), seed, {.threads = 1}), "random");
    oracles::Evaluation answer;
    evaluator.Evaluate(std::span(&question, 1), std::span(&answer, 1));
    EXPECT_LE(std::abs(answer.q) + answer.draw, 1 + 1e-6);
    const auto player = Player::Random(SmallConfig(), seed, {.threads = 1});
    const auto value = player->Predict(path.last(), {.value = true}).value;
    if (value->d > 1 - std::abs(value->wl)) promised_more = true;
  }
  EXPECT_TRUE(promised_more) << "no network here put the evaluator to the test";
}

TEST(DecoderEvaluatorTest, CanBeSearchedWith) {
  DecoderEvaluator evaluator(Player::Random(SmallConfig(), 3, {.threads = 1}), "random");
  const std::vector<oracles::GameSoFar> games(3);
  const auto reports = oracles::SearchMany(evaluator, games, {.leaves = 4}, {.visits = 30});
  for (const oracles::SearchReport& report : reports) {
    EXPECT_EQ(report.visits, 30);
    EXPECT_EQ(report.moves.size(), 20U);
    EXPECT_LE(std::abs(report.q), 1);
  }
}

}  // namespace
}  // namespace kibitz::decoder
