#include "base/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/config.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

std::string Nested(int depth) {
  const auto count = static_cast<size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

std::string Keys(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}\"{}\":0", i > 0 ? "," : "", i);
  return text + "}";
}

TEST(ParseJson, ReadsDocuments) {
  EXPECT_EQ(ParseJson(R"({"b": [1, "[{\"", null], "a": {}})").dump(),
            R"({"b":[1,"[{\"",null],"a":{}})");
  EXPECT_EQ(ParseJson("3").get<int>(), 3);
  EXPECT_EQ(ParseJson(Nested(kMaxJsonDepth)).type(), nlohmann::json::value_t::array);
  EXPECT_EQ(ParseJson(Keys(kMaxJsonKeys)).size(), static_cast<size_t>(kMaxJsonKeys));
  EXPECT_EQ(ParseJson("[" + Keys(3000) + "," + Keys(3000) + "]").size(), 2U);
}

TEST(ParseJson, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "]", "[1,]", "{\"a\"}", "\"", "\"\\", "1 2"}) {
    EXPECT_TRUE(ParseJson(text).is_discarded()) << text;
  }
  EXPECT_TRUE(ParseJson(std::string_view("123\0", 4)).is_discarded());
}

TEST(ParseJson, RefusesMoreThanItsLimits) {
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(ParseJson(Nested(1'000'000)).is_discarded());
  EXPECT_TRUE(ParseJson(std::string(1'000'000, '[')).is_discarded());
  EXPECT_TRUE(ParseJson(Keys(kMaxJsonKeys + 1)).is_discarded());
  EXPECT_TRUE(ParseJson("[[[" + Keys(300'000) + "]]]").is_discarded());
}

TEST(ParseJson, HoldsConfigsToItsLimits) {
  const testing::TempFolder folder;
  std::ofstream(folder.File("deep.json")) << "{\"a\":" << Nested(100'000) << "}";
  EXPECT_THAT(testing::MessageOf([&] { LoadConfig(folder.File("deep.json")); }),
              ::testing::HasSubstr("deep.json: nested over 128 deep"));
}

}  // namespace
}  // namespace kibitz
