#include "students/decoder/data/metrics.h"

#include <gtest/gtest.h>

#include <map>

namespace kibitz::decoder {
namespace {

// A board of 68 tokens, a move, its values and a second board: all scored from the move's
// prediction.
Batch TwoBoards() {
  Sequence sequence;
  sequence.ids.assign(2 * kBoardTokens + 3, kEmpty);
  sequence.board_targets.assign(sequence.ids.size(), int8_t{kIgnore});
  for (size_t i = kBoardTokens - 1; i < sequence.ids.size(); ++i) sequence.board_targets[i] = 0;
  sequence.blocks = {{0, kBoardTokens}, {kBoardTokens + 3, 2 * kBoardTokens + 3}};
  sequence.moves = {{.position = kBoardTokens - 1, .move = 7}};
  return Pack({&sequence, 1});
}

Scores AllRight(const Batch& batch) {
  Scores scores;
  scores.board_loss.assign(4 + kBoardTokens, 0.5F);
  scores.board_hit.assign(4 + kBoardTokens, 1);
  scores.move_loss.assign(batch.moves.size(), 2.0F);
  scores.move_hit.assign(batch.moves.size(), 1);
  return scores;
}

TEST(MetricsTest, BlocksOfBoardsAndOfSingleTokens) {
  const Batch batch = TwoBoards();
  Scores scores = AllRight(batch);
  scores.board_hit[4 + 10] = 0;  // A square of the second board.
  const Metrics metrics = CountMetrics(batch, scores);
  EXPECT_EQ(metrics.board_acc.count, 4 + kBoardTokens);
  EXPECT_EQ(metrics.board_acc.sum, 3 + kBoardTokens);
  // The last token of the first board, the move and its values, and the second board.
  EXPECT_EQ(metrics.board_total_acc.count, 5);
  EXPECT_EQ(metrics.board_total_acc.sum, 4);
  EXPECT_EQ(metrics.board_total_acc_real_blocks.count, 1);
  EXPECT_EQ(metrics.board_total_acc_real_blocks.sum, 0);
  EXPECT_EQ(metrics.board_square_acc.Value(), 0);
  EXPECT_EQ(metrics.board_castling_acc.count, 1);
  EXPECT_EQ(metrics.board_castling_acc.Value(), 1);
  EXPECT_EQ(metrics.board_stm_acc.count, 1);
}

TEST(MetricsTest, CastlingIsAnnouncedByEndPos) {
  const Batch batch = TwoBoards();
  Scores scores = AllRight(batch);
  scores.board_hit[4 + 65] = 0;
  const Metrics metrics = CountMetrics(batch, scores);
  EXPECT_EQ(metrics.board_castling_acc.Value(), 0);
  EXPECT_EQ(metrics.board_stm_acc.Value(), 1);
  EXPECT_EQ(metrics.board_square_acc.Value(), 1);
  EXPECT_EQ(metrics.board_total_acc_real_blocks.Value(), 0);
}

TEST(MetricsTest, SumsAddUp) {
  const Batch batch = TwoBoards();
  Metrics metrics = CountMetrics(batch, AllRight(batch));
  metrics += metrics;
  EXPECT_EQ(metrics.board_acc.count, 2 * (4 + kBoardTokens));
  EXPECT_EQ(metrics.final_move_loss.Value(), 2);
}

TEST(MetricsTest, SampleCountsAreMeansOverTheBatches) {
  Batch batch = TwoBoards();
  batch.first_is_not_best = {1};
  Metrics metrics = CountMetrics(batch, AllRight(batch));
  batch.first_is_not_best = {0};
  for (int i = 0; i < 3; ++i) metrics += CountMetrics(batch, AllRight(batch));
  std::map<std::string, double> values;
  for (const auto& [name, value] : NamedValues(metrics, Phase::kFinetune)) values[name] = value;
  EXPECT_EQ(values.at("batch_normal_samples"), 1);
  EXPECT_EQ(values.at("n_reordered_samples"), 0.25);
}

TEST(MetricsTest, NamesFollowThePhase) {
  const Batch batch = TwoBoards();
  const Metrics metrics = CountMetrics(batch, AllRight(batch));
  std::map<std::string, double> finetune;
  for (const auto& [name, value] : NamedValues(metrics, Phase::kFinetune)) finetune[name] = value;
  EXPECT_EQ(finetune.at("final_move_acc"), 1);
  EXPECT_EQ(finetune.at("batch_normal_samples"), 1);
  EXPECT_FALSE(finetune.contains("thinking_move_acc"));  // Nothing to count.
  std::map<std::string, double> pretrain;
  for (const auto& [name, value] : NamedValues(metrics, Phase::kPretrain)) pretrain[name] = value;
  EXPECT_EQ(pretrain.at("move_acc"), 1);
  EXPECT_FALSE(pretrain.contains("final_move_acc"));
  EXPECT_FALSE(pretrain.contains("batch_normal_samples"));
}

}  // namespace
}  // namespace kibitz::decoder
