#include "nn/transformer/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

constexpr TransformerSizes kSizes = {.width = 64, .heads = 2, .hidden = 48, .positions = 200};
constexpr int64_t kLayers = 3;

std::vector<float> SmallNumbers(int64_t count, Rng& rng) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal()) / 8;
  return numbers;
}

Transformer RandomNet(Precision precision) {
  Rng rng({.seed = 3});
  Transformer net(kSizes, precision);
  for (int64_t i = 0; i < kLayers; ++i) {
    const auto square = [&] { return SmallNumbers(kSizes.width * kSizes.width, rng); };
    const auto wide = [&] { return SmallNumbers(kSizes.width * kSizes.hidden, rng); };
    const std::vector<float> q = square(), k = square(), v = square(), output = square();
    const std::vector<float> w1 = wide(), w2 = wide(), w3 = wide();
    const std::vector<float> scale(static_cast<size_t>(kSizes.width), 1);
    net.AddLayer({.q = q,
                  .k = k,
                  .v = v,
                  .output = output,
                  .w1 = w1,
                  .w2 = w2,
                  .w3 = w3,
                  .attention_norm = scale,
                  .mlp_norm = scale});
  }
  net.SetFinalNorm(std::vector<float>(static_cast<size_t>(kSizes.width), 1));
  return net;
}

// Tokens of one stream: some of one segment, then a block that sees them.
struct Stream {
  int64_t causal = 0;
  int64_t block = 0;
  std::vector<int64_t> wanted = {};  // Of its rows.
  std::vector<float> x = {};         // (rows, D)
  KvCache cache;
};

Stream MakeStream(const Transformer& net, int64_t causal, int64_t block,
                  std::vector<int64_t> wanted, Rng& rng) {
  return {.causal = causal,
          .block = block,
          .wanted = std::move(wanted),
          .x = SmallNumbers((causal + block) * kSizes.width, rng),
          .cache = KvCache(net.CacheFor(kSizes.positions))};
}

// The hidden states of one pass over all of them.
std::vector<float> RunTogether(const Transformer& net, Team& team, std::span<Stream> streams) {
  Pass pass;
  PassMemory memory;
  int64_t rows = 0;
  for (const Stream& stream : streams) rows += stream.causal + stream.block;
  memory.x.Reserve(rows * kSizes.width);
  rows = 0;
  for (Stream& stream : streams) {
    pass.segments.push_back({.cache = &stream.cache, .rows = stream.causal});
    pass.segments.push_back(
        {.cache = &stream.cache, .first = stream.causal, .rows = stream.block, .block = true});
    for (const int64_t row : stream.wanted) pass.wanted.push_back(rows + row);
    std::ranges::copy(stream.x, memory.x.data() + rows * kSizes.width);
    rows += stream.causal + stream.block;
  }
  EXPECT_TRUE(net.Run(team, pass, memory));
  const float* hidden = memory.hidden.data();
  return {hidden, hidden + std::ssize(pass.wanted) * kSizes.width};
}

// A stream's answers depend neither on the others of the pass nor on the number of threads.
TEST(TransformerTest, StreamsTogetherAreStreamsAlone) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const Transformer net = RandomNet(precision);
    Rng rng({.seed = 5});
    std::vector<Stream> streams;
    streams.push_back(MakeStream(net, 71, 68, {0, 70, 138}, rng));
    streams.push_back(MakeStream(net, 3, 1, {3}, rng));
    streams.push_back(MakeStream(net, 100, 68, {}, rng));  // Nothing of it is wanted.
    streams.push_back(MakeStream(net, 1, 150, {1, 2, 3, 150}, rng));
    streams.push_back(MakeStream(net, 60, 70, {129}, rng));
    Team two(2);
    Team one(1);
    const std::vector<float> together = RunTogether(net, two, streams);
    std::vector<float> alone;
    for (Stream& stream : streams) {
      const std::vector<float> hidden = RunTogether(net, one, {&stream, 1});
      alone.insert(alone.end(), hidden.begin(), hidden.end());
    }
    EXPECT_EQ(together.size(), static_cast<size_t>(9 * kSizes.width));
    EXPECT_EQ(together, alone);
  }
}

}  // namespace
}  // namespace kibitz::nn
