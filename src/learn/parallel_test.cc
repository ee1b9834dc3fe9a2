#include "learn/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "learn/runtime.h"

namespace kibitz::learn {
namespace {

TEST(ParallelTest, DoesEveryTaskOnce) {
  SetThreads(2);
  std::vector<std::atomic<int>> done(1000);
  ForEachTask(1000, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
  ForEachTask(0, [](int64_t) { FAIL(); });
}

TEST(ParallelTest, UsesAllThreads) {
  SetThreads(2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  // Each task waits for a second thread to come, but not for ever.
  ForEachTask(2, [&](int64_t) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (size_t threads = 0; threads < 2 && std::chrono::steady_clock::now() < until;) {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
      threads = seen.size();
    }
  });
  EXPECT_EQ(seen.size(), 2);
}

TEST(ParallelTest, PiecesCoverTheRange) {
  SetThreads(2);
  std::vector<std::atomic<int>> done(1001);
  ForEachPiece(1001, 64, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 64, 0);
    for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
  });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace kibitz::learn
