// Overfits one batch: network, losses and optimizer together must predict every target.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "io/tables/parquet.h"
#include "learn/adamw.h"
#include "learn/precision.h"
#include "learn/runtime.h"
#include "students/decoder/data/source.h"
#include "students/decoder/net/loss.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

// Two searched positions of the example records.
Batch ExampleBatch() {
  const std::string path = testing::SourcePath("examples/decoder/searches.parquet");
  std::vector<Sequence> sequences;
  for (uint64_t row : {2U, 5U}) {
    Rng rng({.seed = 1, .sample = row});
    sequences.push_back(ThinkingSequence(ReadSearch(path, row), {.max_seq_len = 300}, rng));
  }
  return Pack(sequences);
}

void LearnByHeart(learn::Precision precision) {
  learn::SetThreads(0);
  NetConfig config;
  config.embed_dim = 64;
  config.num_heads = 4;
  config.num_layers = 3;
  config.d_ff = 128;
  config.max_seq_len = 300;
  config.value_hidden_size = 32;
  config.num_fourier_freq = 16;
  DecoderNet net(config);
  InitNet(net, 1);
  const Batch batch = ExampleBatch();
  learn::AdamW optimizer(net->parameters(), {.weight_decay = 0});
  std::map<std::string, double> values;
  for (int step = 0; step < 600; ++step) {
    optimizer.ZeroGradients();
    const LossAndMetrics result = [&] {
      const learn::PrecisionScope scope(precision);
      return PackedLoss(net, batch, {});
    }();
    result.loss.backward();
    learn::ClipGradients(net->parameters(), 10);
    optimizer.Step(step < 20 ? 1e-4 * (step + 1) : 2e-3);
    for (const auto& [name, value] : NamedValues(result.metrics, Phase::kFinetune)) {
      values[name] = value;
    }
    if (values["final_move_acc"] == 1 && values["thinking_move_acc"] == 1 &&
        values["board_acc"] > 0.995) {
      break;
    }
  }
  EXPECT_EQ(values["final_move_acc"], 1);
  EXPECT_EQ(values["thinking_move_acc"], 1);
  EXPECT_GT(values["board_acc"], 0.99);
}

TEST(OverfitTest, OneFinetuneBatchIsLearnedByHeart) { LearnByHeart(learn::Precision::kFloat32); }

TEST(OverfitTest, OneFinetuneBatchIsLearnedByHeartInBfloat16) {
  if (!learn::CpuHasBfloat16())
    GTEST_SKIP() << "this processor has no AVX-512 BF16: it would take long";
  LearnByHeart(learn::Precision::kBfloat16);
}

}  // namespace
}  // namespace kibitz::decoder
