#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace kibitz {
namespace {

// The published known answers of Philox4x32-10.
TEST(RandomTest, PhiloxKnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, EveryPartOfTheKeyMatters) {
  const StreamKey base{.seed = 1, .epoch = 2, .sample = 3, .purpose = Purpose("a")};
  std::vector<StreamKey> keys(5, base);
  keys[1].seed = 2;
  keys[2].epoch = 1;
  keys[3].sample = 4;
  keys[4].purpose = Purpose("b");
  std::set<uint64_t> first;
  for (const StreamKey& key : keys) first.insert(Rng(key).Next());
  EXPECT_EQ(first.size(), keys.size());
  EXPECT_EQ(Rng(base).Next(), Rng(base).Next());
}

// Files and results depend on these numbers: a change here breaks exact resume.
TEST(RandomTest, StreamIsFixedForever) {
  Rng rng({.seed = 42, .epoch = 1, .sample = 7, .purpose = Purpose("test")});
  const std::vector<uint64_t> drawn = {rng.Next(), rng.Next(), rng.Next()};
  Rng again({.seed = 42, .epoch = 1, .sample = 7, .purpose = Purpose("test")});
  EXPECT_EQ(drawn, (std::vector<uint64_t>{again.Next(), again.Next(), again.Next()}));
  EXPECT_EQ(drawn,
            (std::vector<uint64_t>{0x85246a4f3000ddc2, 0x97fa634ebde4169a, 0x543cabb3e2701904}));
}

TEST(RandomTest, BelowIsUniform) {
  Rng rng({.seed = 5});
  constexpr uint64_t kBound = 7;
  constexpr int kDraws = 700000;
  std::vector<int> counts(kBound);
  for (int i = 0; i < kDraws; ++i) ++counts[rng.Below(kBound)];
  double chi2 = 0;
  for (int count : counts) {
    const double expected = static_cast<double>(kDraws) / kBound;
    chi2 += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi2, 22.5);  // p = 0.001 with 6 degrees of freedom.
  EXPECT_EQ(rng.Below(1), 0U);
}

TEST(RandomTest, MomentsOfUniformNormalGumbel) {
  Rng rng({.seed = 6});
  constexpr int kDraws = 200000;
  double uniform = 0;
  double normal = 0;
  double normal2 = 0;
  double gumbel = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    const double n = rng.Normal();
    uniform += u;
    normal += n;
    normal2 += n * n;
    gumbel += rng.Gumbel();
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.005);
  EXPECT_NEAR(normal / kDraws, 0, 0.01);
  EXPECT_NEAR(normal2 / kDraws, 1, 0.02);
  EXPECT_NEAR(gumbel / kDraws, 0.5772, 0.02);
}

TEST(RandomTest, ShuffleKeepsAndMoves) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> before = items;
  Rng({.seed = 7}).Shuffle(items);
  EXPECT_NE(items, before);
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items, before);
}

}  // namespace
}  // namespace kibitz
