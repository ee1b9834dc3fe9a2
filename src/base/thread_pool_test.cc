#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"

namespace kibitz {
namespace {

TEST(ThreadPoolTest, ParallelForDoesEachOnce) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> done(1000);
  pool.ParallelFor(done.size(), [&](size_t i) { ++done[i]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
  pool.ParallelFor(0, [](size_t) { FAIL(); });
}

TEST(ThreadPoolTest, ExceptionsComeOutAndStopTheLoop) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  auto body = [&](size_t) {
    ++calls;
    throw Error("broken");
  };
  EXPECT_THROW(pool.ParallelFor(1000000, body), Error);
  EXPECT_LE(calls, 2);
  auto future = pool.Submit([]() -> int { throw Error("again"); });
  EXPECT_THROW(future.get(), Error);
}

TEST(ThreadPoolTest, SubmitReturnsAndDestructorFinishes) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(2);
    EXPECT_EQ(pool.Submit([] { return 7; }).get(), 7);
    for (int i = 0; i < 100; ++i) pool.Submit([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
  EXPECT_GE(HardwareThreads(), 1);
}

}  // namespace
}  // namespace kibitz
