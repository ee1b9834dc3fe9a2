#include "nn/kernels/workspaces.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace kibitz::nn {
namespace {

TEST(WorkspacesTest, AreUsedAgainAndNeverShared) {
  struct Workspace {
    std::atomic<int> users = 0;
  };
  Workspaces<Workspace> workspaces;
  std::set<Workspace*> seen;
  for (int i = 0; i < 3; ++i) {
    workspaces.Borrow([&](Workspace& outer) {
      seen.insert(&outer);
      workspaces.Borrow([&](Workspace& inner) { EXPECT_NE(&inner, &outer); });
    });
  }
  EXPECT_LE(seen.size(), 2U) << "at most two were lent at a time";
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10000; ++k) {
        workspaces.Borrow([](Workspace& space) {
          EXPECT_EQ(++space.users, 1);
          --space.users;
        });
      }
    });
  }
}

}  // namespace
}  // namespace kibitz::nn
