#include "players/strength.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "players/make_player.h"
#include "tests/support/test_data.h"

namespace kibitz::players {
namespace {

using ::testing::HasSubstr;

TEST(StrengthTest, InterpolatesBetweenMeasuredRatings) {
  const StrengthTable table{.anchor = "x",
                            .points = {{.temperature = 0, .elo = 1000},
                                       {.temperature = 1, .elo = 800},
                                       {.temperature = 3, .elo = 400}}};
  EXPECT_EQ(TemperatureFor(table, 1200), 0);
  EXPECT_EQ(TemperatureFor(table, 1000), 0);
  EXPECT_DOUBLE_EQ(TemperatureFor(table, 900), 0.5);
  EXPECT_DOUBLE_EQ(TemperatureFor(table, 600), 2);
  EXPECT_EQ(TemperatureFor(table, 10), 3);
}

TEST(StrengthTest, AWrongFileIsTold) {
  const testing::TempFolder folder;
  EXPECT_FALSE(ReadStrengthTable(folder.File("")));
  const auto message = [&](const char* text) {
    std::ofstream(folder.File("ratings.json")) << text;
    return testing::MessageOf([&] { ReadStrengthTable(folder.File("")); });
  };
  EXPECT_THAT(message("{"), HasSubstr("ratings.json"));
  EXPECT_THAT(message("{\"anchor\": \"x\", \"ratings\": []}"), HasSubstr("two or more ratings"));
  EXPECT_THAT(message("{\"anchor\": \"x\", \"ratings\": [{\"temperature\": 0, \"elo\": 1},"
                      "{\"temperature\": 1, \"elo\": 2}]}"),
              HasSubstr("falling elo"));
}

// A model without measured ratings has no strength to set.
TEST(StrengthTest, EloNeedsRatings) {
  const std::string tiny = testing::GoldenPath("decoder/tiny.pt");
  EXPECT_THAT(testing::MessageOf([&] { MakePlayer("decoder:" + tiny + "?elo=900"); }),
              HasSubstr("ratings.json"));
}

}  // namespace
}  // namespace kibitz::players
