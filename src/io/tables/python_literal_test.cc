#include "io/tables/python_literal.h"

#include <gtest/gtest.h>

namespace kibitz::io {
namespace {

using Kind = PythonLiteral::Kind;

TEST(PythonLiteral, ReadsEachKind) {
  const auto value = ParsePythonLiteral(
      " {'a': (1, -2,), \"b\": [True, False, None], 'c': {}, 'd': (3), 'e': (3,), 'f': ()} \n");
  ASSERT_TRUE(value) << value.reason();
  ASSERT_TRUE(value->Is(Kind::kDict));
  const PythonLiteral* a = value->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->Is(Kind::kTuple));
  ASSERT_EQ(a->items.size(), 2U);
  EXPECT_EQ(a->items[1].number, -2);
  const PythonLiteral* b = value->Find("b");
  ASSERT_EQ(b->items.size(), 3U);
  EXPECT_TRUE(b->Is(Kind::kList));
  EXPECT_EQ(b->items[0].number, 1);
  EXPECT_TRUE(b->items[1].Is(Kind::kBool));
  EXPECT_TRUE(b->items[2].Is(Kind::kNone));
  EXPECT_TRUE(value->Find("c")->items.empty());
  EXPECT_TRUE(value->Find("d")->Is(Kind::kInt)) << "brackets alone make no tuple";
  EXPECT_TRUE(value->Find("e")->Is(Kind::kTuple));
  EXPECT_TRUE(value->Find("f")->items.empty());
  EXPECT_EQ(value->Find("g"), nullptr);
  EXPECT_EQ(a->Find("a"), nullptr);
}

TEST(PythonLiteral, ReadsItsOwnStrings) {
  for (const std::string text :
       {"", "plain", "it's", "\"", "back\\slash", "\n\t\x01", "\xc3\xa9"}) {
    const auto value = ParsePythonLiteral(PythonString(text));
    ASSERT_TRUE(value) << value.reason();
    EXPECT_EQ(value->text, text);
  }
  EXPECT_EQ((*ParsePythonLiteral("'\\xe9\\n\\r\\t\\'\\\"\\\\'")).text, "\xc3\xa9\n\r\t'\"\\");
}

TEST(PythonLiteral, TellsWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the text ends too early at character 1"},
      {"1 2", "more text after the end at character 3"},
      {"[1 2]", "a missing comma or bracket at character 4"},
      {"[,]",
       "something else than a string, a number, a tuple, a list, a dict or a bool at character 2"},
      {"(1,,)",
       "something else than a string, a number, a tuple, a list, a dict or a bool at character 4"},
      {"[1", "a missing comma or bracket at character 3"},
      {"'abc", "a string without an end at character 5"},
      {"'a\nb'", "a string without an end at character 3"},
      {"'\\", "a string without an end at character 2"},
      {"'\\q'", "an escape that is not known at character 2"},
      {"'\\x4'", "an escape that is not known at character 2"},
      {"9223372036854775808", "a number that does not fit 64 bits at character 1"},
      {"-", "a number that does not fit 64 bits at character 1"},
      {"{1: 2}", "a key that is not a string at character 3"},
      {"{'a'}", "a key without a value at character 5"},
      {"{'a': 1, 'a': 2}", "a key that was there before at character 13"},
      {"{'a': 1 'b': 2}", "a missing comma or bracket at character 9"},
      {"[[[[[[[[[[1]]]]]]]]]]", "nested too deep at character 10"},
      {"__import__('os')",
       "something else than a string, a number, a tuple, a list, a dict or a bool at character 1"},
  };
  for (const auto& [text, reason] : cases) {
    const auto value = ParsePythonLiteral(text);
    EXPECT_FALSE(value) << text;
    EXPECT_EQ(value.reason(), reason) << text;
  }
  std::string keys = "{";
  for (int i = 0; i < 17; ++i) keys += fmt::format("'{}': 1,", i);
  EXPECT_EQ(ParsePythonLiteral(keys + "}").reason(), "a dict with too many keys at character 120");
}

}  // namespace
}  // namespace kibitz::io
