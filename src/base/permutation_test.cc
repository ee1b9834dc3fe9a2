#include "base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kibitz {
namespace {

TEST(Permutation, EveryNumberOnce) {
  for (uint64_t size : {1U, 2U, 3U, 5U, 64U, 65U, 1000U, 4096U, 100'003U}) {
    const Permutation order(size, {.seed = 7, .epoch = size});
    std::vector<bool> seen(size, false);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t number = order[i];
      ASSERT_LT(number, size);
      ASSERT_FALSE(seen[number]);
      seen[number] = true;
    }
  }
}

TEST(Permutation, KeysGiveDifferentOrders) {
  const Permutation a(1000, {.seed = 1, .epoch = 0});
  const Permutation b(1000, {.seed = 1, .epoch = 1});
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += a[i] == b[i] ? 1 : 0;
  EXPECT_LT(same, 10);
}

// Neighbours land far from each other: the mean distance of two random places is a third.
TEST(Permutation, ShufflesWell) {
  constexpr uint64_t kSize = 1'000'000;
  const Permutation order(kSize, {.seed = 3});
  double distance = 0;
  double correlation = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    const auto here = static_cast<double>(order[i]) / kSize;
    const auto next = static_cast<double>(order[i + 1]) / kSize;
    distance += std::fabs(here - next);
    correlation += (here - 0.5) * (static_cast<double>(i) / kSize - 0.5);
  }
  EXPECT_NEAR(distance / kSize, 1.0 / 3, 0.002);
  EXPECT_NEAR(correlation / kSize, 0, 0.0005);
}

}  // namespace
}  // namespace kibitz
