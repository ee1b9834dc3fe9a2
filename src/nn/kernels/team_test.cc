#include "nn/kernels/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kibitz::nn {
namespace {

TEST(TeamTest, DoesEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    Team team(threads);
    EXPECT_EQ(team.size(), threads);
    for (int64_t count : {0, 1, 2, 3, 100}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      team.Run(count, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
      for (const auto& times : done) EXPECT_EQ(times, 1);
      for (const int64_t work : {int64_t{1}, int64_t{1} << 40}) {
        team.Run(count, work, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
      }
      for (const auto& times : done) EXPECT_EQ(times, 3);
    }
  }
}

TEST(TeamTest, ManyRoundsInARowAndAfterSleep) {
  Team team(4);
  std::atomic<int64_t> sum = 0;
  int64_t expected = 0;
  for (int64_t round = 0; round < 20000; ++round) {
    const int64_t count = 2 + round % 7;
    team.Run(count, [&](int64_t i) { sum += round + i; });
    expected += count * round + count * (count - 1) / 2;
    if (round % 4000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(sum, expected) << round;
  }
}

}  // namespace
}  // namespace kibitz::nn
