#include "arena/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

// Work whose duration has nothing to do with its number.
std::optional<Json> Slowly(const Piece& piece) {
  Rng rng({.seed = 9, .sample = static_cast<uint64_t>(piece.number)});
  std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(2000)));
  return Json(piece.number * piece.number);
}

TEST(OrderedWorkTest, ResultsComeInOrderWithAnyNumberOfThreads) {
  for (int threads : {1, 2, 5}) {
    std::vector<int64_t> taken;
    DoInOrder(3, 40, {.threads = threads}, Slowly, [&](int64_t number, const Json& result) {
      EXPECT_EQ(result, number * number);
      taken.push_back(number);
      return true;
    });
    ASSERT_EQ(taken.size(), 40u);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(taken[i], static_cast<int64_t>(i) + 3);
  }
}

TEST(OrderedWorkTest, EndsWhenThereIsEnough) {
  std::atomic<int> begun = 0;
  int taken = 0;
  DoInOrder(
      0, 1'000'000, {.threads = 3},
      [&](const Piece& piece) {
        ++begun;
        return Slowly(piece);
      },
      [&](int64_t number, const Json&) {
        ++taken;
        return number < 9;
      });
  EXPECT_EQ(taken, 10);
  EXPECT_LT(begun, 200);
}

TEST(OrderedWorkTest, TheFirstFailureIsThrown) {
  const auto fail = [](const Piece& piece) -> std::optional<Json> {
    if (piece.number == 7) throw Error("piece seven");
    return Slowly(piece);
  };
  EXPECT_EQ(testing::MessageOf([&] {
              DoInOrder(0, 100, {.threads = 2}, fail, [](int64_t, const Json&) { return true; });
            }),
            "piece seven");
}

TEST(OrderedWorkTest, WhatTheJournalHasIsNotDoneAgain) {
  const testing::TempFolder folder;
  const auto run = [&](int64_t count) {
    RunJournal journal({.folder = folder.path()}, {{"command", "test"}});
    std::atomic<int> done = 0;
    int64_t sum = 0;
    DoInOrder(
        0, count, {.threads = 2, .journal = &journal},
        [&](const Piece& piece) {
          ++done;
          return Slowly(piece);
        },
        [&](int64_t, const Json& result) {
          sum += result.get<int64_t>();
          return true;
        });
    return std::pair<int, int64_t>(done, sum);
  };
  EXPECT_EQ(run(10), (std::pair<int, int64_t>(10, 285)));
  EXPECT_EQ(run(12), (std::pair<int, int64_t>(2, 285 + 100 + 121)));
  EXPECT_EQ(run(12), (std::pair<int, int64_t>(0, 285 + 100 + 121)));
}

// A test that was decided before the kill: the same command begins nothing more.
TEST(OrderedWorkTest, NothingIsBegunWhereTheJournalIsEnough) {
  const testing::TempFolder folder;
  const auto begun = [&] {
    RunJournal journal({.folder = folder.path()}, {{"command", "test"}});
    std::atomic<int> count = 0;
    DoInOrder(
        0, 1000, {.threads = 2, .journal = &journal},
        [&](const Piece& piece) {
          ++count;
          return Slowly(piece);
        },
        [](int64_t number, const Json&) { return number < 9; });
    return count.load();
  };
  EXPECT_GE(begun(), 10);
  EXPECT_EQ(begun(), 0);
}

}  // namespace
}  // namespace kibitz::arena
