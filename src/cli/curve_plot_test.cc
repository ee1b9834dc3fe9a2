#include "cli/curve_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz::cli {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

// The matches of a pattern's first group, in order.
std::vector<std::string> All(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

class CurvePlotTest : public ::testing::Test {
 protected:
  Curves Read(const std::string& lines) {
    WriteFileAtomically(folder_.File("metrics.jsonl"), lines);
    return ReadCurves(folder_.File("metrics.jsonl"));
  }
  std::string Svg(const std::vector<RunCurves>& runs, const PlotOptions& options) {
    WriteCurves(folder_.File("c.svg"), runs, options);
    return ReadWhole(folder_.File("c.svg"));
  }
  const TempFolder folder_;
};

TEST_F(CurvePlotTest, DrawsWhatTheLogSays) {
  const Curves curves = Read(
      "{\"step\":10,\"kind\":\"train\",\"total_loss\":4.0,\"lr\":0.1}\n"
      "{\"step\":20,\"kind\":\"train\",\"total_loss\":2.0,\"lr\":null}\n"
      "{\"step\":20,\"kind\":\"val\",\"total_loss\":3.0}\n");
  EXPECT_EQ(curves.at("train/total_loss"), (Points{{10, 4}, {20, 2}}));
  EXPECT_EQ(curves.at("train/lr").size(), 1);
  const std::string svg = Svg({{"a", curves}}, {.metrics = {}, .title = "a < b"});
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(All(svg, "font-weight='600'>([^<]*)</text>"),
              ::testing::ElementsAre("a &lt; b", "total_loss", "lr"));
  // The training curve runs from the upper left to the lower right of its panel, 540 wide.
  EXPECT_EQ(All(svg, "class='train' stroke='#0072b2' points='([^']*)'")[0],
            "58.0,92.0 516.0,242.0");
  EXPECT_THAT(MessageOf([&] {
                Svg({{"a", curves}}, {.metrics = {"x"}, .title = ""});
              }),
              HasSubstr("found metrics lr, total_loss; expected x"));
}

TEST_F(CurvePlotTest, AResumedRunAndAnUnfinishedLine) {
  EXPECT_EQ(Read("{\"step\":1,\"total_loss\":5}\n{\"step\":2,\"total_loss\":4}\n"
                 "{\"step\":3,\"total_loss\":3}\n{\"step\":2,\"total_loss\":1}\n{\"step\":3,\"tot")
                .at("train/total_loss"),
            (Points{{1, 5}, {2, 1}}));
  EXPECT_THAT(MessageOf([&] { Read("{\"step\":1,\"tot\n{\"step\":2,\"total_loss\":4}\n"); }),
              HasSubstr("metrics.jsonl"));
}

TEST_F(CurvePlotTest, SmoothsAsTensorBoard) {
  const Points smooth = Smoothed({{1, 4}, {2, 0}, {3, 0}}, 0.5);
  EXPECT_DOUBLE_EQ(smooth[0].second, 4);
  EXPECT_DOUBLE_EQ(smooth[1].second, 4.0 / 3);
  EXPECT_DOUBLE_EQ(smooth[2].second, 4.0 / 7);
  const Curves curves = {{"train/total_loss", {{1, 4}, {2, 0}, {3, 0}}},
                         {"train/lr", {{1, 1}, {2, 1}, {3, 0}}}};
  const std::string svg = Svg({{"a", curves}}, {.smooth = 0.5});
  EXPECT_EQ(All(svg, "<polyline class='(raw|train)'"),
            (std::vector<std::string>{"raw", "train", "train"}));  // The lr is not smoothed.
  EXPECT_THAT(svg, HasSubstr("train, smoothed by 0.5"));
  EXPECT_THAT(Svg({{"a", curves}}, {.smooth = 0}), Not(HasSubstr("class='raw'")));
}

TEST_F(CurvePlotTest, MarksTheBestStepInEveryPanelWithValidation) {
  const Curves curves = {{"train/total_loss", {{100, 3}, {200, 2}, {300, 1}}},
                         {"val/total_loss", {{100, 3}, {200, 2.5}, {300, 2.75}}},
                         {"val/top5_acc", {{100, 0.5}, {200, 0.6}, {300, 0.7}}},
                         {"val/deep_acc", {{100, 0.5}, {200, 0.6}, {300, 0.7}}},
                         {"train/lr", {{100, 1}, {300, 0}}}};
  EXPECT_EQ(BestStep(curves), std::make_pair(200.0, 2.5));
  EXPECT_EQ(BestStep({{"train/total_loss", {{1, 1}}}}), std::nullopt);
  const std::string svg = Svg({{"a", curves}}, {});
  EXPECT_THAT(All(svg, "text-anchor='middle' class='tick'>([^<]*)<"),
              ::testing::Contains("150").Times(4));
  EXPECT_THAT(svg, HasSubstr("best step 200, validation loss 2.5"));
  EXPECT_EQ(All(svg, "(<circle class='best')").size(), 3);
  EXPECT_EQ(All(svg, "font-weight='600'>([^<]*)</text>"),
            (std::vector<std::string>{"total_loss", "top5_acc", "deep_acc", "lr"}));
}

TEST_F(CurvePlotTest, SeveralRunsHaveAColourAndALegend) {
  const Curves curves = {{"train/total_loss", {{1, 2}, {2, 1}}}, {"val/total_loss", {{2, 1.5}}}};
  const Curves longer = {{"train/total_loss", {{1, 3}, {4, 1}}}};
  const std::string svg = Svg({{"one", curves}, {"two & three", longer}}, {});
  EXPECT_EQ(All(svg, "class='legend'[^>]*>([^<]*)<"),
            (std::vector<std::string>{"one (best step 2, validation loss 1.5)", "two &amp; three",
                                      "train", "validation"}));
  EXPECT_EQ(All(svg, "class='train' stroke='([^']*)'"),
            (std::vector<std::string>{"#0072b2", "#d55e00"}));
  // Steps mean the same in both: step 2 of 4 ends at a third of the panel.
  EXPECT_EQ(All(svg, "class='train' stroke='#0072b2' points='[^ ]* ([^,]*),"),
            (std::vector<std::string>{"390.7"}));
}

// With any number of panels each row fills the width.
TEST_F(CurvePlotTest, LeavesNoHole) {
  for (size_t count = 1; count <= 10; ++count) {
    Curves curves;
    PlotOptions options;
    for (size_t i = 0; i < count; ++i) {
      options.metrics.push_back("m" + std::to_string(i));
      curves["train/" + options.metrics.back()] = {{1, 1}, {2, 2}};
    }
    const std::string svg = Svg({{"a", curves}}, options);
    std::map<std::string, double> widths;  // By the row's y.
    const std::regex rect(
        "<clipPath id='[^']*'><rect x='[^']*' y='([^']*)' width='([^']*)' height");
    for (std::sregex_iterator at(svg.begin(), svg.end(), rect), end; at != end; ++at) {
      widths[(*at)[1]] += std::stod((*at)[2]) + 58 + 24;  // And the margins.
    }
    for (const auto& [y, width] : widths) EXPECT_NEAR(width, 1080, 0.5) << count << " panels";
    EXPECT_EQ(All(svg, "(<clipPath)").size(), count);
  }
}

}  // namespace
}  // namespace kibitz::cli
