#include "cli/curve_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;

TEST(CurvePlotTest, DrawsWhatTheLogSays) {
  const TempFolder folder;
  WriteFileAtomically(folder.File("metrics.jsonl"),
                      "{\"step\":10,\"kind\":\"train\",\"total_loss\":4.0,\"lr\":0.1}\n"
                      "{\"step\":20,\"kind\":\"train\",\"total_loss\":2.0,\"lr\":null}\n"
                      "{\"step\":20,\"kind\":\"val\",\"total_loss\":3.0}\n");
  const Curves curves = ReadCurves(folder.File("metrics.jsonl"));
  EXPECT_EQ(curves.at("train/total_loss"),
            (std::vector<std::pair<double, double>>{{10, 4}, {20, 2}}));
  EXPECT_EQ(curves.at("train/lr").size(), 1);
  WriteCurves(folder.File("c.svg"), curves, {.metrics = {}, .title = "a < b"});
  const std::string svg = ReadWhole(folder.File("c.svg"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("validation"));
  // The train curve runs from the upper left to the lower right of its panel.
  EXPECT_THAT(svg, HasSubstr("<polyline class='train' points='52.0,64.0 346.0,226.0 '/>"));
  EXPECT_THAT(MessageOf([&] {
                WriteCurves(folder.File("d.svg"), curves, {.metrics = {"x"}, .title = ""});
              }),
              HasSubstr("it has train/lr, train/total_loss, val/total_loss"));
}

}  // namespace
}  // namespace kibitz::io
