#include "nn/transformer/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "nn/kernels/amx.h"
#include "nn/kernels/bf16.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kHeads = 3;
constexpr int64_t kLayer = 1;

std::vector<float> RandomNumbers(int64_t count, Rng& rng) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal());
  return numbers;
}

float Rounded(float x) { return FromBf16(ToBf16(x)); }

// What a stream has remembered, and attention over it as the formula says.
struct PlainStream {
  bool bf16 = false;
  int64_t width = 0;                         // E
  std::vector<std::vector<float>> keys{};    // By position: (H, E).
  std::vector<std::vector<float>> values{};  // The same.

  float Number(float x) const { return bf16 ? Rounded(x) : x; }

  // As far as rounding goes: queries times log2(e) / sqrt(E), keys and values; not the softmax.
  double Score(const std::vector<float>& query, int64_t position, int64_t head) const {
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const auto factor = static_cast<float>(scale * std::numbers::log2e);
    double score = 0;
    for (int64_t e = head * width; e < (head + 1) * width; ++e) {
      const float q = query[static_cast<size_t>(e)];
      const double number =
          bf16 ? Rounded(q * factor) / std::numbers::log2e : static_cast<double>(q) * scale;
      score += number * Number(keys[static_cast<size_t>(position)][static_cast<size_t>(e)]);
    }
    return score;
  }

  std::vector<float> Attend(const std::vector<float>& query, const RowKeys& row) const {
    std::vector<float> out(static_cast<size_t>(kHeads * width));
    for (int64_t head = 0; head < kHeads; ++head) {
      std::vector<double> weights;
      double sum = 0;
      for (int64_t i = 0; i < row.seen; ++i) {
        const bool hidden = i >= row.hidden_begin && i < row.hidden_end;
        weights.push_back(hidden ? 0 : std::exp(Score(query, i, head)));
        sum += weights.back();
      }
      for (int64_t e = head * width; e < (head + 1) * width; ++e) {
        double mixed = 0;
        for (int64_t i = 0; i < row.seen; ++i) {
          mixed += weights[static_cast<size_t>(i)] / sum *
                   Number(values[static_cast<size_t>(i)][static_cast<size_t>(e)]);
        }
        out[static_cast<size_t>(e)] = static_cast<float>(mixed);
      }
    }
    return out;
  }
};

// Both kinds of caches where this processor has both.
std::vector<bool> Kinds() {
  return HasAvx512Bf16() ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

// One pass: what its rows see, and what comes out for all but every fifth of them.
class PassTest {
 public:
  explicit PassTest(Rng& rng) : rng_(rng) {}

  void Run(std::span<const Segment> segments, std::map<KvCache*, PlainStream>& plain) {
    const int64_t width = plain.begin()->second.width;
    const Attention attention(segments, kHeads, width);
    int64_t row = 0;
    for (const Segment& segment : segments) {
      for (int64_t i = 0; i < segment.rows; ++i) {
        Remember(attention, row++, segment.first + i, plain[segment.cache]);
      }
    }
    row = 0;
    for (const Segment& segment : segments) {
      for (int64_t i = 0; i < segment.rows; ++i, ++row) {
        if (row % 5 != 1) Ask(row, SeenBy(segment, i), plain[segment.cache]);
      }
    }
    Check(attention, kHeads * width, plain.begin()->second.bf16 ? 0.01 : 2e-5);
  }

 private:
  static RowKeys SeenBy(const Segment& segment, int64_t i) {
    RowKeys keys = {.seen = segment.first + (segment.block ? segment.rows : i + 1)};
    if (segment.views.empty()) return keys;
    const RowView& view = segment.views[static_cast<size_t>(i)];
    keys.hidden_begin = view.hidden_begin;
    keys.hidden_end = view.hidden_end;
    return keys;
  }

  void Remember(const Attention& attention, int64_t row, int64_t position, PlainStream& stream) {
    stream.keys.resize(static_cast<size_t>(position));
    stream.values.resize(static_cast<size_t>(position));
    stream.keys.push_back(RandomNumbers(kHeads * stream.width, rng_));
    stream.values.push_back(RandomNumbers(kHeads * stream.width, rng_));
    attention.Remember(kLayer, row, stream.keys.back().data(), stream.values.back().data());
  }

  void Ask(int64_t row, const RowKeys& seen, const PlainStream& stream) {
    const auto query = RandomNumbers(kHeads * stream.width, rng_);
    const auto out = stream.Attend(query, seen);
    rows_.push_back(row);
    queries_.insert(queries_.end(), query.begin(), query.end());
    expected_.insert(expected_.end(), out.begin(), out.end());
  }

  std::vector<float> Answers(const Attention& attention, std::span<const int64_t> rows,
                             const float* queries, int64_t stride) {
    std::vector<float> out(rows.size() * static_cast<size_t>(stride));
    attention.Run(
        team_,
        {.layer = kLayer, .rows = rows, .queries = queries, .stride = stride, .out = out.data()});
    return out;
  }

  // Together, and each row alone with the same numbers.
  void Check(const Attention& attention, int64_t stride, double near) {
    const auto out = Answers(attention, rows_, queries_.data(), stride);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected_[i], near) << i;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const size_t at = i * static_cast<size_t>(stride);
      const auto alone = Answers(attention, {&rows_[i], 1}, queries_.data() + at, stride);
      ASSERT_TRUE(std::ranges::equal(alone, std::span(out).subspan(at, alone.size()))) << i;
    }
  }

  Rng& rng_;
  Team team_{2};
  std::vector<int64_t> rows_;
  std::vector<float> queries_;
  std::vector<float> expected_;
};

TEST(AttentionTest, StreamsGrowAreCutAndGrowAgain) {
  Rng rng({.seed = 3});
  for (const bool bf16 : Kinds()) {
    for (int64_t width : {6, 32, 40, 64}) {
      const CacheSizes sizes = {
          .layers = 2, .heads = kHeads, .head_width = width, .positions = 150, .bf16 = bf16};
      KvCache a(sizes);
      KvCache b(sizes);
      std::map<KvCache*, PlainStream> plain;
      for (KvCache* cache : {&a, &b}) plain[cache] = {.bf16 = bf16, .width = width};
      const std::vector<std::vector<Segment>> passes = {
          {{.cache = &a, .first = 0, .rows = 68, .block = true},
           {.cache = &a, .first = 68, .rows = 3}},
          {{.cache = &b, .first = 0, .rows = 1}},
          {{.cache = &a, .first = 71, .rows = 70, .block = true},
           {.cache = &b, .first = 1, .rows = 33}},
          {{.cache = &a, .first = 72, .rows = 1}, {.cache = &b, .first = 34, .rows = 1}}};
      for (const auto& segments : passes) PassTest(rng).Run(segments, plain);
    }
  }
}

// Two rows of one pass hide different tokens, most of them the same.
TEST(AttentionTest, HiddenTokensAreNotSeen) {
  Rng rng({.seed = 4});
  for (const bool bf16 : Kinds()) {
    for (const auto& [begin, end] : {std::pair{40, 120}, {64, 192}, {0, 200}, {70, 75}}) {
      KvCache cache(
          {.layers = 2, .heads = kHeads, .head_width = 32, .positions = 240, .bf16 = bf16});
      std::map<KvCache*, PlainStream> plain = {{&cache, {.bf16 = bf16, .width = 32}}};
      const std::vector<Segment> before = {{.cache = &cache, .first = 0, .rows = 200}};
      PassTest(rng).Run(before, plain);
      std::vector<RowView> views;
      for (int32_t i = 0; i < 30; ++i) {
        views.push_back({.turn = 200 + i, .hidden_begin = begin, .hidden_end = end - i % 3});
      }
      const std::vector<Segment> after = {
          {.cache = &cache, .first = 200, .rows = 30, .views = views}};
      PassTest(rng).Run(after, plain);
    }
  }
}

TEST(AttentionTest, RowsTurnByTheirPlaceOrView) {
  KvCache cache({.layers = 1, .heads = 1, .head_width = 4, .positions = 9});
  const RowView views[] = {{.turn = 3}, {.turn = 7}};
  const std::vector<Segment> segments = {{.cache = &cache, .first = 5, .rows = 2},
                                         {.cache = &cache, .first = 7, .rows = 2, .views = views}};
  const Attention attention(segments, 1, 4);
  for (const auto& [row, turn] : {std::pair{0, 5}, {1, 6}, {2, 3}, {3, 7}}) {
    EXPECT_EQ(attention.TurnOf(row), turn);
  }
}

}  // namespace
}  // namespace kibitz::nn
