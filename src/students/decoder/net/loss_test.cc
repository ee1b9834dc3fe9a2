// Compares the packed loss with the plain one, and checks properties of both.
#include "students/decoder/net/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "learn/runtime.h"
#include "students/decoder/data/stream.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

NetConfig SmallConfig(int layers) {
  return {.embed_dim = 64,
          .num_heads = 2,
          .num_layers = layers,
          .max_seq_len = 512,
          .d_ff = 96,
          .n_buckets = 20,
          .value_hidden_size = 24,
          .num_fourier_freq = 8};
}

// Of the example records; some boards are left out of the games.
Batch ExampleBatch(int sequences, double variation_ratio, uint64_t seed) {
  const std::string folder = testing::SourcePath("examples/decoder/");
  const auto games =
      OpenGames({folder + "games.parquet"}, {.max_seq_len = 512, .skip_board_prob = 0.2});
  const auto searches =
      OpenSearches({folder + "searches.parquet"}, {.max_seq_len = 512, .max_depth = 2});
  BatchStream stream(games.get(), searches.get(),
                     {.seed = seed, .batch_size = sequences, .variation_ratio = variation_ratio});
  return stream.Next()->batch;
}

struct Step {
  double loss = 0;
  Metrics metrics;
  std::map<std::string, torch::Tensor> gradients;
};

enum class Version { kPlain, kPacked };

Step StepOf(Version version, DecoderNet& net, const Batch& batch, const LossOptions& options) {
  net->zero_grad();
  for (auto& parameter : net->parameters()) parameter.mutable_grad() = torch::Tensor();
  LossAndMetrics result = version == Version::kPlain
                              ? PlainLoss(net, batch, options, net->config.max_seq_len)
                              : PackedLoss(net, batch, options);
  result.loss.backward();
  Step step{result.loss.item<double>(), result.metrics, {}};
  for (const auto& item : net->named_parameters()) {
    if (item.value().grad().defined()) step.gradients[item.key()] = item.value().grad().clone();
  }
  return step;
}

void ExpectSame(const Step& found, const Step& expected) {
  EXPECT_NEAR(found.loss, expected.loss, 1e-5 * expected.loss);
  const auto names = NamedValues(expected.metrics, Phase::kFinetune);
  const auto values = NamedValues(found.metrics, Phase::kFinetune);
  ASSERT_EQ(values.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(values[i].first, names[i].first);
    EXPECT_NEAR(values[i].second, names[i].second, 1e-5 * std::max(1.0, names[i].second))
        << names[i].first;
  }
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    const double size = gradient.abs().max().item<double>();
    EXPECT_LE((found.gradients.at(name) - gradient).abs().max().item<double>(), 1e-5 * size)
        << name;
  }
}

TEST(LossTest, PackedIsPlain) {
  learn::SetThreads(2);
  for (const int layers : {1, 2, 3}) {
    DecoderNet net(SmallConfig(layers));
    InitNet(net, 1);
    for (const double ratio : {0.0, 0.5, 1.0}) {
      const Batch batch = ExampleBatch(3, ratio, static_cast<uint64_t>(layers));
      for (const Phase phase : {Phase::kPretrain, Phase::kFinetune}) {
        if (phase == Phase::kPretrain && ratio > 0) continue;
        SCOPED_TRACE(fmt::format("{} layers, ratio {}, phase {}", layers, ratio, int(phase)));
        const LossOptions options{.phase = phase};
        ExpectSame(StepOf(Version::kPacked, net, batch, options),
                   StepOf(Version::kPlain, net, batch, options));
      }
    }
  }
}

// Some roots alone, some thoughts, with every target that the documents do not have.
Batch RichBatch(int sequences, uint64_t seed) {
  ThinkingOptions options{.max_seq_len = 512, .max_depth = 2};
  options.draw_candidates = true;
  options.soft_targets = true;
  options.legal_share = 0.2;
  options.instinct_target = true;
  options.piece_moves = true;
  options.square_moves = true;
  options.branch_values = 3;
  options.early_ends = true;
  options.no_thought_prob = 0.4;
  options.board_target_prob = 0.5;
  options.own_values_prob = 0.5;
  const auto searches =
      OpenSearches({testing::SourcePath("examples/decoder/searches.parquet")}, options);
  BatchStream stream(nullptr, searches.get(),
                     {.seed = seed, .batch_size = sequences, .variation_ratio = 1});
  return stream.Next()->batch;
}

TEST(LossTest, PackedIsPlainWithRichTargets) {
  learn::SetThreads(2);
  for (const bool mean_values : {false, true}) {
    for (const int layers : {1, 2, 3}) {
      NetConfig config = SmallConfig(layers);
      config.mean_values = mean_values;
      config.square_policy = mean_values;
      config.square_values = mean_values;
      config.line_votes = mean_values;
      config.value_votes = mean_values && layers > 1;
      config.compared_votes = mean_values && layers > 2;
      config.separate_lines = mean_values;
      config.board_places = mean_values;
      config.board_before = mean_values && layers > 1;
      config.square_sight = mean_values && layers != 2;
      config.square_attacks = mean_values && layers != 3;
      DecoderNet net(config);
      InitNet(net, 1);
      if (net->value_vote) torch::nn::init::constant_(net->value_vote->weight, 0.1);
      if (net->compare_vote) torch::nn::init::constant_(net->compare_vote->weight, 0.2);
      const Batch batch = RichBatch(6, static_cast<uint64_t>(layers) + 3);
      ASSERT_GT(batch.branches.size(), 0);
      ASSERT_GT(batch.shares.size(), 0);
      const auto own = std::ranges::count(batch.own_values, 1);
      ASSERT_TRUE(own > 0 && own < 6) << own;
      SCOPED_TRACE(fmt::format("{} layers, mean values {}", layers, mean_values));
      const LossOptions loss{.weights = {.legal = 3}};
      ExpectSame(StepOf(Version::kPacked, net, batch, loss),
                 StepOf(Version::kPlain, net, batch, loss));
    }
  }
}

// In games too, where some boards are left out: their moves and values read no squares.
TEST(LossTest, MovesReadTheSquaresOfTheirBoards) {
  NetConfig config = SmallConfig(2);
  DecoderNet plain(config);
  config.square_policy = true;
  config.square_values = true;
  DecoderNet net(config);
  InitNet(plain, 1);
  InitNet(net, 1);
  for (const double ratio : {0.0, 0.5}) {
    const Batch batch = ExampleBatch(3, ratio, 7);
    const Step step = StepOf(Version::kPacked, net, batch, {});
    ExpectSame(step, StepOf(Version::kPlain, net, batch, {}));
    const Step without = StepOf(Version::kPacked, plain, batch, {});
    EXPECT_NE(step.metrics.final_move_loss.sum, without.metrics.final_move_loss.sum);
    EXPECT_NE(step.metrics.wl_loss.sum, without.metrics.wl_loss.sum);
    EXPECT_EQ(step.metrics.board_loss.sum, without.metrics.board_loss.sum);
  }
}

TEST(LossTest, OwnValuesHideTheTargets) {
  DecoderNet net(SmallConfig(2));
  InitNet(net, 3);
  Batch batch = RichBatch(6, 5);
  std::ranges::fill(batch.own_values, uint8_t{1});
  batch.branches.clear();
  // Other values, shown nowhere: moves are predicted as before. Enough passes for all of a thought.
  Batch other = batch;
  for (ValueTarget& value : other.values) value.wl = -value.wl;
  const LossOptions options{.own_value_passes = 7};
  EXPECT_FLOAT_EQ(static_cast<float>(PackedLoss(net, batch, options).metrics.final_move_loss.sum),
                  static_cast<float>(PackedLoss(net, other, options).metrics.final_move_loss.sum));
  std::ranges::fill(other.own_values, uint8_t{0});
  EXPECT_NE(static_cast<float>(PackedLoss(net, batch, options).metrics.final_move_loss.sum),
            static_cast<float>(PackedLoss(net, other, options).metrics.final_move_loss.sum));
}

TEST(LossTest, SoftTargetIsTheMeanOfItsMoves) {
  DecoderNet net(SmallConfig(2));
  InitNet(net, 4);
  Batch batch = ExampleBatch(1, 1, 3);
  const auto loss = [&](const Batch& of) {
    return PackedLoss(net, of, {}).metrics.final_move_loss.sum;
  };
  MoveTarget& final_move = batch.moves.back();
  ASSERT_EQ(final_move.kind, MoveKind::kFinal);
  double expected = 0;
  for (const auto& [move, share] : {std::pair{5, 0.25}, std::pair{900, 0.75}}) {
    final_move.move = move;
    expected += share * loss(batch);
  }
  batch.shares = {{.move = 5, .share = 0.25F}, {.move = 900, .share = 0.75F}};
  final_move.share_count = 2;
  EXPECT_NEAR(loss(batch), expected, 1e-5);
}

// One final move whose legal moves are 5 and 900: their probabilities add up.
TEST(LossTest, IllegalMovesCostWhatTheLegalOnesLack) {
  DecoderNet net(SmallConfig(2));
  InitNet(net, 4);
  Batch batch = ExampleBatch(1, 1, 3);
  MoveTarget& final_move = batch.moves.back();
  ASSERT_EQ(final_move.kind, MoveKind::kFinal);
  double probability = 0;
  for (const int move : {5, 900}) {
    final_move.move = move;
    probability += std::exp(-PackedLoss(net, batch, {}).metrics.final_move_loss.sum);
  }
  batch.shares = {{.move = 5, .share = 0.25F}, {.move = 900, .share = 0.75F}};
  final_move.share_count = 2;
  final_move.legal = true;
  const LossAndMetrics without = PackedLoss(net, batch, {});
  const LossAndMetrics with = PackedLoss(net, batch, {.weights = {.legal = 2}});
  ASSERT_EQ(with.metrics.legal_loss.count, 1);
  EXPECT_NEAR(with.metrics.legal_loss.sum, -std::log(probability), 1e-5);
  EXPECT_EQ(without.metrics.legal_loss.sum, with.metrics.legal_loss.sum);
  EXPECT_NEAR(with.loss.item<double>() - without.loss.item<double>(), -2 * std::log(probability),
              1e-4);
}

TEST(LossTest, AnyNumberOfThreads) {
  DecoderNet net(SmallConfig(3));
  InitNet(net, 2);
  const Batch batch = ExampleBatch(4, 0.5, 9);
  learn::SetThreads(1);
  const Step one = StepOf(Version::kPacked, net, batch, {});
  learn::SetThreads(2);
  ExpectSame(StepOf(Version::kPacked, net, batch, {}), one);
}

TEST(LossTest, RecomputedLayersChangeNothing) {
  DecoderNet net(SmallConfig(3));
  InitNet(net, 2);
  const Batch batch = ExampleBatch(2, 0.5, 9);
  const Step kept = StepOf(Version::kPacked, net, batch, {});
  const Step again = StepOf(Version::kPacked, net, batch, {.recompute_layers = true});
  ExpectSame(again, kept);
}

TEST(LossTest, WorksWithoutGradients) {
  const torch::NoGradGuard no_grad;
  DecoderNet net(SmallConfig(2));
  InitNet(net, 2);
  const LossAndMetrics result = PackedLoss(net, ExampleBatch(2, 0.5, 9), {});
  EXPECT_FALSE(result.loss.requires_grad());
  EXPECT_GT(result.metrics.total_loss.Value(), 0);
}

}  // namespace
}  // namespace kibitz::decoder
