#include "nn/transformer/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/random.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kHeads = 3;

std::vector<float> RandomNumbers(int64_t count, Rng& rng) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal());
  return numbers;
}

// What a stream has remembered, and attention over it as the formula says.
struct PlainStream {
  std::vector<std::vector<float>> keys;    // By position: (H, E).
  std::vector<std::vector<float>> values;  // The same.

  std::vector<float> Attend(const std::vector<float>& query, int64_t seen, int64_t width) const {
    std::vector<float> out(static_cast<size_t>(kHeads * width));
    for (int64_t head = 0; head < kHeads; ++head) {
      std::vector<double> weights;
      double sum = 0;
      for (int64_t i = 0; i < seen; ++i) {
        double score = 0;
        for (int64_t e = head * width; e < (head + 1) * width; ++e) {
          score += static_cast<double>(query[static_cast<size_t>(e)]) *
                   keys[static_cast<size_t>(i)][static_cast<size_t>(e)];
        }
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
        sum += weights.back();
      }
      for (int64_t e = head * width; e < (head + 1) * width; ++e) {
        double mixed = 0;
        for (int64_t i = 0; i < seen; ++i) {
          mixed += weights[static_cast<size_t>(i)] / sum *
                   values[static_cast<size_t>(i)][static_cast<size_t>(e)];
        }
        out[static_cast<size_t>(e)] = static_cast<float>(mixed);
      }
    }
    return out;
  }
};

TEST(AttentionTest, StreamsGrowAreCutAndGrowAgain) {
  constexpr int64_t kLayer = 1;
  Rng rng({.seed = 3});
  Team team(2);
  for (int64_t width : {6, 32, 40}) {
    KvCache a({.layers = 2, .heads = kHeads, .head_width = width, .positions = 150});
    KvCache b({.layers = 2, .heads = kHeads, .head_width = width, .positions = 150});
    std::map<KvCache*, PlainStream> plain;
    const std::vector<std::vector<Segment>> passes = {
        {{.cache = &a, .first = 0, .rows = 68, .block = true},
         {.cache = &a, .first = 68, .rows = 3}},
        {{.cache = &b, .first = 0, .rows = 1}},
        {{.cache = &a, .first = 71, .rows = 70, .block = true},
         {.cache = &b, .first = 1, .rows = 33}},
        {{.cache = &a, .first = 72, .rows = 1}, {.cache = &b, .first = 34, .rows = 1}}};
    for (const auto& segments : passes) {
      const Attention attention(segments, kHeads, width);
      std::vector<int64_t> rows;
      std::vector<float> queries;
      std::vector<float> expected;
      int64_t row = 0;
      for (const Segment& segment : segments) {
        PlainStream& stream = plain[segment.cache];
        stream.keys.resize(static_cast<size_t>(segment.first));
        stream.values.resize(static_cast<size_t>(segment.first));
        for (int64_t i = 0; i < segment.rows; ++i) {
          stream.keys.push_back(RandomNumbers(kHeads * width, rng));
          stream.values.push_back(RandomNumbers(kHeads * width, rng));
          EXPECT_EQ(attention.TurnOf(row), segment.first + i);
          attention.Remember(kLayer, row++, stream.keys.back().data(), stream.values.back().data());
        }
      }
      row = 0;
      for (const Segment& segment : segments) {
        for (int64_t i = 0; i < segment.rows; ++i, ++row) {
          if (row % 5 == 1) continue;  // Not all rows are asked for.
          const auto query = RandomNumbers(kHeads * width, rng);
          const int64_t seen = segment.first + (segment.block ? segment.rows : i + 1);
          const auto out = plain[segment.cache].Attend(query, seen, width);
          rows.push_back(row);
          queries.insert(queries.end(), query.begin(), query.end());
          expected.insert(expected.end(), out.begin(), out.end());
        }
      }
      std::vector<float> out(expected.size());
      attention.Run(team, {.layer = kLayer,
                           .rows = rows,
                           .queries = queries.data(),
                           .stride = kHeads * width,
                           .out = out.data()});
      for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace kibitz::nn
