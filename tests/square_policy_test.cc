// A policy and values that read squares, and squares that know their place, at play
// beside training: the same probabilities and values.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "base/text.h"
#include "games/chess/fen.h"
#include "learn/weights.h"
#include "students/decoder/net/loss.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/player.h"

namespace kibitz::decoder {
namespace {

const NetConfig kConfig = {.embed_dim = 48,
                           .num_heads = 3,
                           .num_layers = 3,
                           .max_seq_len = 640,
                           .d_ff = 64,
                           .n_buckets = 20,
                           .value_hidden_size = 24,
                           .num_fourier_freq = 8,
                           .square_policy = true,
                           .square_values = true,
                           .separate_lines = true,
                           .line_votes = true,
                           .value_votes = true,
                           .board_places = true,
                           .board_before = true,
                           .square_sight = true,
                           .square_attacks = true};

// A thought as a training sample that asks for the moves it has.
Sequence SampleOf(const Thought& thought) {
  Sequence sample{
      .ids = thought.tokens, .board_targets = {}, .blocks = {}, .moves = {}, .values = {}};
  sample.board_targets.assign(thought.tokens.size(), kIgnore);
  sample.thinking = true;
  for (int32_t i = 0; i < sample.size(); ++i) {
    const TokenId token = thought.tokens[static_cast<size_t>(i)];
    if (token == kStartPos) sample.blocks.push_back({i, i + kBoardTokens});
    if (!IsMove(token)) continue;
    const bool final_move = thought.tokens[static_cast<size_t>(i) - 1] == kEndThink;
    sample.moves.push_back({.position = i - 1,
                            .move = token,
                            .kind = final_move ? MoveKind::kFinal : MoveKind::kThinking});
  }
  for (size_t i = 0; i < thought.wl_entries.size(); ++i) {
    sample.values.push_back({.wl_position = thought.wl_entries[i].position,
                             .wl = thought.wl_entries[i].value,
                             .d = thought.d_entries[i].value,
                             .valid = true});
  }
  return sample;
}

void CheckPlayIsTraining(const NetConfig& config) {
  const torch::NoGradGuard no_grad;
  const io::StateDict weights = RandomWeights(config, 5);
  DecoderNet net(config);
  learn::LoadWeights(*net, weights, "random weights");
  Player player(std::make_unique<Model>(weights, config, nn::NetworkOptions{}));
  const chess::Board root =
      *chess::ParseFen("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
  // Boards as the rules give them: random weights would write none.
  ThinkOptions options = {.max_variations = 2, .max_depth = 3};
  const BoardTokens board = BoardTokensOf(root);
  for (const char* line : {"e5f7 e7f7 f3f6", "e2a6 b4c3 a6b7"}) {
    chess::Board position = root;
    if (options.script.empty()) {
      options.script.assign(board.begin(), board.end());
      options.script.push_back(kStartThink);
    }
    for (const std::string_view name : Split(line, ' ')) {
      const TokenId token = *FindToken(name);
      position = position.After(*MoveOf(position, token));
      const BoardTokens after = BoardTokensOf(position);
      options.script.insert(options.script.end(), {token, kWlValue, kDValue});
      options.script.insert(options.script.end(), after.begin(), after.end());
    }
    options.script.push_back(kEndVar);
  }
  options.script.push_back(kEndThink);
  const Thought thought = player.Think(root, options, {});
  ASSERT_EQ(thought.end, ThoughtEnd::kFinished);

  double thinking = 0;
  int moves = 0;
  for (const Variation& variation : thought.variations) {
    for (const ThoughtNode& node : variation.nodes) {
      EXPECT_TRUE(node.board_true);
      thinking -= std::log(node.probability);
      ++moves;
    }
  }
  ASSERT_EQ(moves, 6);
  Sequence sample = SampleOf(thought);
  const Metrics metrics = PlainLoss(net, Pack({&sample, 1}), {}, 640).metrics;
  EXPECT_NEAR(metrics.thinking_move_loss.sum, thinking, 1e-4 * thinking);
  EXPECT_NEAR(metrics.final_move_loss.sum, -std::log(thought.final_move->probability), 1e-4);
  // The values that training writes are those of the thought.
  sample.own_values = true;
  for (ValueTarget& value : sample.values) value.wl = value.d = 0;
  const Metrics own =
      PackedLoss(net, Pack({&sample, 1}), {.own_value_passes = 2 * moves + 2}).metrics;
  EXPECT_NEAR(own.thinking_move_loss.sum, thinking, 1e-4 * thinking);
  EXPECT_NEAR(own.final_move_loss.sum, -std::log(thought.final_move->probability), 1e-3);

  // The instinct, alone and among others.
  Sequence alone{.ids = {board.begin(), board.end()},
                 .board_targets = std::vector<int8_t>(kBoardTokens, kIgnore),
                 .blocks = {{0, kBoardTokens}},
                 .moves = {},
                 .values = {}};
  const std::vector<chess::Board> boards = {chess::Board(), root};
  const Prediction prediction = player.PredictAll(boards, {.legal_only = false})[1];
  alone.moves.push_back({.position = kBoardTokens - 1, .move = prediction.chosen->token});
  const Metrics instinct = PlainLoss(net, Pack({&alone, 1}), {}, 640).metrics;
  EXPECT_NEAR(instinct.final_move_loss.sum, -std::log(prediction.chosen->probability), 1e-4);
}

TEST(SquarePolicyTest, PlayIsTraining) {
  CheckPlayIsTraining(kConfig);
  NetConfig compared = kConfig;
  compared.compared_votes = true;
  CheckPlayIsTraining(compared);
}

TEST(SquarePolicyTest, AGameHasTheValuesOfItsMoves) {
  Player player(std::make_unique<Model>(RandomWeights(kConfig, 6), kConfig, nn::NetworkOptions{}));
  const chess::Board start;
  const Prediction first = player.Predict(start, {.value = true});
  const std::unique_ptr<GameReader> game = player.Read(start);
  EXPECT_EQ(game->Predict({.value = true}).value, first.value);
  game->Play(*first.chosen->move);
  EXPECT_EQ(game->values().front(), *first.value);
  const Prediction second = game->Predict({.value = true});
  game->Play(*second.chosen->move);
  EXPECT_EQ(game->values().back(), *second.value);
}

}  // namespace
}  // namespace kibitz::decoder
