#include "base/text.h"

#include <gtest/gtest.h>

namespace kibitz {
namespace {

TEST(TextTest, SplitsAndTrims) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(SplitWords("  a \t b\n"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(SplitWords("  ").empty());
  EXPECT_EQ(LowerCase("UCI_Elo \xc4 9"), "uci_elo \xc4 9");
}

TEST(TextTest, NumbersAreStrict) {
  EXPECT_EQ(ParseInt("-12"), -12);
  for (auto text : {"", " 1", "1 ", "1x", "99999999999999999999", "0x10", "1.0"}) {
    EXPECT_FALSE(ParseInt(text)) << text;
  }
  EXPECT_FALSE(ParseUnsigned("-1"));
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(ParseDouble("1e-4"), 1e-4);
  EXPECT_FALSE(ParseDouble("1e-4x"));
}

TEST(TextTest, Bytes) {
  EXPECT_EQ(ParseBytes("100"), 100U);
  EXPECT_EQ(ParseBytes("2G"), uint64_t{2} << 30);
  EXPECT_EQ(ParseBytes("64k"), 65536U);
  EXPECT_FALSE(ParseBytes("G"));
  EXPECT_FALSE(ParseBytes("99999999999T"));
}

TEST(TextTest, Counts) {
  EXPECT_EQ(ParseCount("100"), 100U);
  EXPECT_EQ(ParseCount("1M"), 1'000'000U);
  EXPECT_EQ(ParseCount("1.5k"), 1500U);
  EXPECT_EQ(ParseCount("0.3G"), 300'000'000U);
  for (const char* text : {"", "M", "-1k", "1.5", "nank", "1e30k", "1 k"}) {
    EXPECT_FALSE(ParseCount(text)) << text;
  }
}

TEST(TextTest, EditDistance) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("depth", "dept"), 1);
  EXPECT_EQ(EditDistance("lr", "rl"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(TextTest, NearestName) {
  const std::vector<std::string> known = {"batch_size", "learning_rate", "model.embed_dim"};
  EXPECT_EQ(NearestName("batchsize", known), "batch_size");
  EXPECT_EQ(NearestName("learning_rat", known), "learning_rate");
  EXPECT_EQ(NearestName("embed_dim", known), "model.embed_dim");
  EXPECT_FALSE(NearestName("zzzzzz", known));
  EXPECT_FALSE(NearestName("winner", std::vector<std::string>{"n"}));
}

TEST(TextTest, ForPeople) {
  EXPECT_EQ(HumanCount(950), "950");
  EXPECT_EQ(HumanCount(1234567), "1.23M");
  EXPECT_EQ(HumanCount(999999), "1.00M");
  EXPECT_EQ(HumanCount(0.5), "0.5");
  EXPECT_EQ(HumanSeconds(75.2), "1:15");
  EXPECT_EQ(HumanSeconds(3700), "1:01:40");
  EXPECT_EQ(Quoted(std::string_view("a\0b\n", 4)), "'a\\x00b\\x0a'");
  EXPECT_EQ(Quoted("abcdef", 3), "'abc'...");
}

}  // namespace
}  // namespace kibitz
