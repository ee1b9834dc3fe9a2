#include "uci/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/test_data.h"

namespace kibitz::uci {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

EngineOptions DecoderOptions() {
  return {.player = {.kind = "decoder",
                     .path = testing::GoldenPath("decoder/tiny.pt"),
                     .options = {{"temperature", "0.5"}, {"threads", "3"}}}};
}

TEST(UciOptionsTest, DeclaresThemWithTheirPresentValues) {
  EngineOptions options = DecoderOptions();
  const auto lines = OptionTable(options).Lines();
  for (const char* expected : {"option name Mode type combo default think var think var instinct",
                               "option name Temperature type string default 0.5",
                               "option name MaxVariations type spin default 0 min 0 max 100",
                               "option name OnePly type check default true",
                               "option name Precision type combo default f32 var f32 var int8",
                               "option name Threads type spin default 3 min 1 max 1024",
                               "option name MultiPV type spin default 1 min 1 max 500",
                               "option name UCI_ShowWDL type check default false",
                               "option name Seed type spin default -1 min -1 max 1000000000",
                               "option name Hash type spin default 16 min 1 max 33554432"}) {
    EXPECT_THAT(lines, Contains(expected));
  }
  EXPECT_THAT(lines, Contains(StartsWith("option name WeightsFile type string default decoder:")));
  EngineOptions none;
  EXPECT_THAT(OptionTable(none).Lines(), Contains("option name Model type string default <empty>"));
  // Not offered, for it would not be kept.
  EXPECT_THAT(lines, ::testing::Each(Not(HasSubstr("Chess960"))));
}

TEST(UciOptionsTest, EachPlayerHasItsOwn) {
  EngineOptions options{.player = {.kind = "negamax"}};
  OptionTable table(options);
  EXPECT_THAT(table.Lines(), Contains("option name Depth type spin default 1 min 1 max 10"));
  EXPECT_THAT(table.Lines(),
              Contains("option name Eval type combo default tables var pieces var tables"));
  EXPECT_THAT(table.Set("Mode", "think"), HasSubstr("there is no option"));
  EXPECT_EQ(table.Set("Player", "random"), "");
  EXPECT_THAT(table.Set("Depth", "2"), HasSubstr("there is no option"));
}

// Strength is offered where it was measured, and reaches the player as one option.
TEST(UciOptionsTest, StrengthIsLimitedByMeasuredRatings) {
  EngineOptions none = DecoderOptions();
  EXPECT_THAT(OptionTable(none).Lines(), ::testing::Each(Not(HasSubstr("UCI_Elo"))));

  const testing::TempFolder folder;
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::create_symlink(testing::SourcePath(std::string("models/policy-small/") + name),
                                    folder.File(name));
  }
  std::ofstream(folder.File("ratings.json"))
      << R"({"anchor": "x", "ratings": [{"temperature": 0, "elo": 1000},
                                        {"temperature": 2, "elo": 600}]})";
  EngineOptions options{.player = {.kind = "policy", .path = folder.File("")}};
  OptionTable table(options);
  EXPECT_THAT(table.Lines(), Contains("option name UCI_LimitStrength type check default false"));
  EXPECT_THAT(table.Lines(),
              Contains("option name UCI_Elo type spin default 1000 min 600 max 1000"));
  EXPECT_EQ(table.Set("UCI_Elo", "700"), "");
  EXPECT_THAT(players::ToText(options.player), Not(HasSubstr("elo=7")));
  EXPECT_EQ(table.Set("UCI_LimitStrength", "true"), "");
  EXPECT_THAT(players::ToText(options.player), HasSubstr("elo=700"));
  EXPECT_EQ(table.Strength(), "strength 700: temperature by ratings against x");
  EXPECT_THAT(table.Set("UCI_Elo", "2000"), HasSubstr("from 600 to 1000"));
  EXPECT_EQ(table.Set("UCI_LimitStrength", "false"), "");
  EXPECT_EQ(table.Strength(), "");
  EXPECT_NO_THROW(players::MakerFor(options.player)->Make());
  EXPECT_THAT(players::ToText(options.player), Not(HasSubstr("elo=7")));
}

TEST(UciOptionsTest, SetsAndRefuses) {
  EngineOptions options = DecoderOptions();
  OptionTable table(options);
  EXPECT_EQ(table.Set("mode", "Instinct"), "");
  EXPECT_EQ(table.Set("PRECISION", "int8"), "");
  EXPECT_EQ(table.Set("Temperature", "0.25"), "");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"threads", "3"}, {"think", "0"}, {"precision", "int8"}, {"temperature", "0.25"}};
  EXPECT_EQ(options.player.options, expected);
  EXPECT_EQ(table.Set("UCI_ShowWDL", "true"), "");
  EXPECT_TRUE(options.show_wdl);
  EXPECT_EQ(table.Set("Move Overhead", "100"), "");
  EXPECT_EQ(options.move_overhead, 100);
  EXPECT_EQ(table.Set("Seed", "5"), "");
  EXPECT_EQ(options.seed, 5);
  EXPECT_EQ(table.Set("Seed", "-1"), "");
  EXPECT_EQ(options.seed, std::nullopt);
  EXPECT_EQ(table.Set("Hash", "1024"), "");

  EXPECT_THAT(table.Set("Mode", "guess"), HasSubstr("expected think or instinct"));
  EXPECT_THAT(table.Set("MultiPV", "0"), HasSubstr("from 1 to 500"));
  EXPECT_THAT(table.Set("MultiPV", ""), HasSubstr("whole number"));
  for (const char* bad : {"nan", "-1", "11", "x", ""}) {
    EXPECT_THAT(table.Set("Temperature", bad), HasSubstr("from 0 to 10")) << bad;
  }
  EXPECT_THAT(table.Set("UCI_ShowWDL", "1"), HasSubstr("true or false"));
  EXPECT_THAT(table.Set("MultPV", "2"), HasSubstr("did you mean MultiPV?"));
  EXPECT_EQ(options.multipv, 1);
  EXPECT_EQ(options.player.options, expected);
}

TEST(UciOptionsTest, AModelThatCannotBeUsedIsToldAndKept) {
  EngineOptions options = DecoderOptions();
  OptionTable table(options);
  EXPECT_THAT(table.Set("Model", "no-such-file.pt"), HasSubstr("no-such-file.pt"));
  EXPECT_EQ(options.player.path, "no-such-file.pt");
  EXPECT_EQ(table.Set("WeightsFile", testing::ModelPath("policy-small")), "");
  EXPECT_THAT(table.Lines(), Contains(StartsWith("option name Temperature ")));
  EXPECT_EQ(table.Set("Model", "<empty>"), "");
  EXPECT_EQ(options.player, players::PlayerName{});
}

}  // namespace
}  // namespace kibitz::uci
