#include "uci/time_budget.h"

#include <gtest/gtest.h>

namespace kibitz::uci {
namespace {

using chess::Color;
using std::chrono::milliseconds;

std::optional<TimeBudget> Budget(const char* go, Color mover = Color::kWhite) {
  return TimeBudgetOf(ParseGo(go, chess::Board()), mover, milliseconds(30));
}

TEST(TimeBudgetTest, FollowsTheRequest) {
  EXPECT_FALSE(Budget(""));
  EXPECT_FALSE(Budget("depth 3"));
  EXPECT_FALSE(Budget("infinite movetime 100"));
  EXPECT_FALSE(Budget("wtime 1000", Color::kBlack));
  EXPECT_EQ(Budget("movetime 100"), (TimeBudget{milliseconds(100), milliseconds(100)}));
  EXPECT_EQ(Budget("wtime 60030 winc 1000 btime 5"),
            (TimeBudget{milliseconds(2400 + 750), milliseconds(54000)}));
  EXPECT_EQ(Budget("wtime 5 btime 60030", Color::kBlack)->soft, milliseconds(2400));
  // A large increment may not take more than the clock has.
  EXPECT_EQ(Budget("wtime 1030 winc 60000"), (TimeBudget{milliseconds(500), milliseconds(900)}));
  EXPECT_EQ(Budget("wtime 10030 movestogo 4")->soft, milliseconds(2500));
  EXPECT_EQ(Budget("wtime 10030 movestogo 1")->soft, milliseconds(9000));
  EXPECT_EQ(Budget("wtime -20"), (TimeBudget{milliseconds(0), milliseconds(0)}));
}

// A game at any clock never oversteps it, however long each thought takes up to its hard limit.
TEST(TimeBudgetTest, NeverOversteps) {
  for (int64_t start : {40, 100, 1000, 60000, 3600000}) {
    int64_t left = start;
    for (int move = 0; move < 300; ++move) {
      GoRequest request;
      request.white_time = left;
      const auto budget = TimeBudgetOf(request, Color::kWhite, milliseconds(30));
      ASSERT_LE(budget->soft, budget->hard);
      if (left > 30) {
        ASSERT_LT(budget->hard.count(), left);
      }
      left -= (move == 100 ? budget->hard : budget->soft).count();
      ASSERT_GT(left, 0);
    }
  }
}

}  // namespace
}  // namespace kibitz::uci
