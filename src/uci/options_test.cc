#include "uci/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kibitz::uci {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(UciOptionsTest, DeclaresThemWithTheirPresentValues) {
  EngineOptions options;
  options.network.path = "a b.pt";
  options.temperature = 0.5;
  options.network.threads = 3;
  const auto lines = OptionLines(options);
  for (const char* expected : {"option name Model type string default a b.pt",
                               "option name Mode type combo default think var think var instinct",
                               "option name Temperature type string default 0.5",
                               "option name MaxVariations type spin default 0 min 0 max 100",
                               "option name MaxDepth type spin default 0 min 0 max 100",
                               "option name Precision type combo default f32 var f32 var int8",
                               "option name Threads type spin default 3 min 1 max 1024",
                               "option name MultiPV type spin default 1 min 1 max 500",
                               "option name UCI_ShowWDL type check default false",
                               "option name Hash type spin default 16 min 1 max 33554432"}) {
    EXPECT_THAT(lines, Contains(expected));
  }
  EXPECT_THAT(OptionLines({}), Contains("option name Model type string default <empty>"));
  // Not offered, for it would not be kept.
  EXPECT_THAT(OptionLines({}), ::testing::Each(::testing::Not(HasSubstr("Chess960"))));
}

TEST(UciOptionsTest, SetsAndRefuses) {
  EngineOptions options;
  EXPECT_EQ(SetOption(options, "mode", "Instinct"), "");
  EXPECT_EQ(options.mode, Mode::kInstinct);
  EXPECT_EQ(SetOption(options, "PRECISION", "int8"), "");
  EXPECT_EQ(options.network.precision, nn::Precision::kInt8);
  EXPECT_EQ(SetOption(options, "UCI_ShowWDL", "true"), "");
  EXPECT_TRUE(options.show_wdl);
  EXPECT_EQ(SetOption(options, "Temperature", "0.25"), "");
  EXPECT_EQ(options.temperature, 0.25);
  EXPECT_EQ(SetOption(options, "Move Overhead", "100"), "");
  EXPECT_EQ(options.move_overhead, 100);
  EXPECT_EQ(SetOption(options, "Model", "<empty>"), "");
  EXPECT_EQ(options.network.path, "");
  EXPECT_EQ(SetOption(options, "Hash", "1024"), "");

  EXPECT_THAT(SetOption(options, "Mode", "guess"), HasSubstr("expected think or instinct"));
  EXPECT_THAT(SetOption(options, "Mode", "policy"), HasSubstr("expected think or instinct"));
  EXPECT_THAT(SetOption(options, "MultiPV", "0"), HasSubstr("from 1 to 500"));
  EXPECT_THAT(SetOption(options, "MultiPV", ""), HasSubstr("whole number"));
  for (const char* bad : {"nan", "-1", "11", "x", ""}) {
    EXPECT_THAT(SetOption(options, "Temperature", bad), HasSubstr("from 0 to 10")) << bad;
  }
  EXPECT_THAT(SetOption(options, "UCI_ShowWDL", "1"), HasSubstr("true or false"));
  EXPECT_THAT(SetOption(options, "MultPV", "2"), HasSubstr("did you mean MultiPV?"));
  EXPECT_EQ(options.multipv, 1);
  EXPECT_EQ(options.temperature, 0.25);
}

TEST(UciOptionsTest, RefusesChess960) {
  EngineOptions options;
  EXPECT_THAT(SetOption(options, "UCI_Chess960", "true"), HasSubstr("stays false"));
  EXPECT_EQ(SetOption(options, "UCI_Chess960", "false"), "");
}

}  // namespace
}  // namespace kibitz::uci
