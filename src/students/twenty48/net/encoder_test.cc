#include "students/twenty48/net/encoder.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "learn/adamw.h"
#include "learn/weights.h"
#include "students/twenty48/net/attention_free.h"
#include "students/twenty48/net/loss.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;

NetConfig Small(HeadType head) {
  NetConfig config;
  config.hidden_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.num_key_value_heads = 1;
  config.intermediate_size = 40;
  config.head_type = head;
  return config;
}

// Boards of made-up tiles, each with made-up values.
Batch MadeUp(int64_t rows) {
  Rng rng({.seed = 5, .purpose = Purpose("made up")});
  Batch batch;
  for (int64_t row = 0; row < rows; ++row) {
    for (int cell = 0; cell < 16; ++cell)
      batch.tokens.push_back(static_cast<uint8_t>(rng.Below(17)));
    Judged judged;
    for (float& value : judged.values) value = static_cast<float>(10 * rng.Uniform());
    judged.legal = 1U + static_cast<unsigned>(rng.Below(15));
    do {
      judged.move = static_cast<int>(rng.Below(4));
    } while ((judged.legal >> judged.move & 1) == 0);
    batch.judged.push_back(judged);
  }
  return batch;
}

TEST(Encoder, FusedAgreesWithPlain) {
  for (HeadType head : {HeadType::kBinnedEv, HeadType::kActionPolicy}) {
    Encoder net(Small(head));
    learn::InitWeights(*net, 3);
    const Tensor tokens = TokenTensor(MadeUp(7).tokens);
    std::vector<std::vector<Tensor>> gradients;
    std::vector<Tensor> answers;
    for (Form form : {Form::kPlain, Form::kFused}) {
      net->zero_grad();
      answers.push_back(net->forward(tokens, form));
      (answers.back() *
       torch::linspace(-1, 2, answers.back().numel()).reshape(answers.back().sizes()))
          .sum()
          .backward();
      gradients.emplace_back();
      for (const Tensor& parameter : net->parameters()) {
        gradients.back().push_back(parameter.grad().clone());
      }
    }
    EXPECT_LT((answers[0] - answers[1]).abs().max().item<double>(), 1e-5);
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      const double size = gradients[0][i].abs().max().item<double>();
      EXPECT_LT((gradients[0][i] - gradients[1][i]).abs().max().item<double>(), 2e-5 * (1 + size));
    }
  }
}

TEST(AttentionFree, WrittenIntoTheEncoderGivesTheSameLogits) {
  for (HeadType head : {HeadType::kBinnedEv, HeadType::kActionPolicy}) {
    NetConfig config = Small(head);
    config.hidden_size = 64;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.num_hidden_layers = 3;
    config.intermediate_size = 280;
    AttentionFree small(config);
    InitAttentionFree(small, 7);
    Encoder net(config);
    InitEncoder(net, 8);
    const Tensor tokens = TokenTensor(MadeUp(9).tokens);
    const Tensor expected = small->forward(tokens);
    EXPECT_GT((net->forward(tokens) - expected).abs().max().item<double>(), 1e-2);
    WriteInto(*small, net);
    for (Form form : {Form::kPlain, Form::kFused}) {
      EXPECT_LT((net->forward(tokens, form) - expected).abs().max().item<double>(), 1e-4);
    }
    // The mean over the cells can become attention: its queries have a gradient.
    net->forward(tokens).square().sum().backward();
    const auto* block = net->blocks[1]->as<BlockImpl>();
    EXPECT_GT(block->attn->wq->weight.grad().abs().max().item<double>(), 0);
  }
}

TEST(Encoder, RecomputedBlocksGiveTheSameGradients) {
  Encoder net(Small(HeadType::kBinnedEv));
  InitEncoder(net, 3);
  const Tensor tokens = TokenTensor(MadeUp(9).tokens);
  for (Form form : {Form::kPlain, Form::kFused}) {
    std::vector<std::vector<Tensor>> gradients;
    for (bool recompute : {false, true}) {
      net->recompute_blocks = recompute;
      net->zero_grad();
      net->forward(tokens, form).square().sum().backward();
      gradients.emplace_back();
      for (const Tensor& parameter : net->parameters()) {
        gradients.back().push_back(parameter.grad().clone());
      }
    }
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      const double size = gradients[0][i].abs().max().item<double>();
      EXPECT_LT((gradients[0][i] - gradients[1][i]).abs().max().item<double>(), 1e-6 * (1 + size));
    }
  }
}

TEST(Encoder, CountsItsParameters) {
  for (HeadType head : {HeadType::kBinnedEv, HeadType::kActionPolicy}) {
    Encoder net(Small(head));
    int64_t count = 0;
    for (const Tensor& parameter : net->parameters()) count += parameter.numel();
    EXPECT_EQ(static_cast<uint64_t>(count), CountParameters(Small(head)));
  }
}

TEST(Encoder, OverfitsABatchInEveryMode) {
  for (TargetMode mode : {TargetMode::kBinnedEv, TargetMode::kHardMove, TargetMode::kTsadSoft}) {
    TargetOptions target = {.mode = mode, .tsad_temperature = 0.05};
    const Binner binner(BinningOptions{});
    Encoder net(
        Small(mode == TargetMode::kBinnedEv ? HeadType::kBinnedEv : HeadType::kActionPolicy));
    learn::InitWeights(*net, 1);
    const TargetRows rows = ToTensors(MadeUp(48), target, binner);
    learn::LoopOptions options;
    options.weight_decay = 0;
    learn::AdamW optimizer(net->parameters(), options);
    // Softened targets follow the values, which here have nothing to do with the move made.
    const Tensor wanted = mode == TargetMode::kTsadSoft ? rows.soft.argmax(1) : rows.moves;
    double right = 0;
    for (int step = 0; step < 250; ++step) {
      optimizer.ZeroGradients();
      const Tensor logits = net->forward(rows.tokens);
      LossOf(logits, rows, target).total.backward();
      optimizer.Step(5e-3);
      right = Played(logits, rows.legal).eq(wanted).to(torch::kFloat32).mean().item<double>();
    }
    EXPECT_GT(right, 0.95) << static_cast<int>(mode);
  }
}

}  // namespace
}  // namespace kibitz::twenty48
