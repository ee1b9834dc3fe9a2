#include "base/skip_counter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kibitz {
namespace {

TEST(SkipCounter, CountsByReasonAndReportsTheFirst) {
  SkipCounter skipped;
  EXPECT_TRUE(skipped.empty());
  EXPECT_EQ(skipped.Text(), "");
  skipped.Add("illegal move", {.file = "games.parquet", .row = 812, .detail = "e2e5"});
  skipped.Add("illegal move", {.file = "games.parquet", .row = 900, .detail = "a1a1"});
  skipped.Add("bad FEN", {}, 3);
  skipped.Add("never happened", {}, 0);
  EXPECT_EQ(skipped.CountOf("illegal move"), 2U);
  EXPECT_EQ(skipped.CountOf("never happened"), 0U);
  EXPECT_EQ(skipped.Text(), "3 x bad FEN; 2 x illegal move (first: games.parquet, row 812: e2e5)");
  EXPECT_EQ(skipped.ToJson().dump(), R"({"bad FEN":{"count":3},"illegal move":{"count":2,)"
                                     R"("first":"games.parquet, row 812: e2e5"}})");
}

// Rows are ordered by number, whichever thread came first; other places stay as they came.
TEST(SkipCounter, TheLowestRowIsTheFirst) {
  SkipCounter one;
  one.Add("reason", {.file = "b", .row = 10});
  one.Add("line", {.file = "a.pgn:12"});
  SkipCounter two;
  two.Add("reason", {.file = "b", .row = 9});
  two.Add("line", {.file = "a.pgn:112"});
  for (const auto& [first, second] : {std::pair(&one, &two), std::pair(&two, &one)}) {
    SkipCounter all;
    all.Merge(*first);
    all.MergeAndWarn(*second);
    EXPECT_EQ(all.CountOf("reason"), 2U);
    EXPECT_EQ(all.entries().at("reason").first.Text(), "b, row 9");
    EXPECT_EQ(all.entries().at("line").first.Text(), first->entries().at("line").first.Text());
  }
}

}  // namespace
}  // namespace kibitz
