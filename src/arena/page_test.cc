#include "arena/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kibitz::arena {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageTest, NeedsNothingFromOutsideAndEscapesText) {
  Page page("a < b & \"c\"");
  page.Table({"name", "n"}, {{"<script>", "1"}});
  page.Verbatim("one\ntwo <b>\n");
  page.Plot(BarPlot("accuracy", {{"1500", 0.5, 0.4, 0.6}, {"1600", 0.3, 0.1, 0.5}}));
  page.Plot(SharePlot("results", {{"A", {{"wins", 3}, {"draws", 0}, {"losses", 1}}}}));
  page.Plot(LinePlot({.title = "Elo",
                      .lines = {{.name = "a",
                                 .x = {1, 2, 3},
                                 .y = {1, NAN, 3},
                                 .low = {0, NAN, 2},
                                 .high = {2, NAN, 4}}},
                      .diagonal = true,
                      .points = true}));
  const std::string html = page.Html();
  EXPECT_THAT(html, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("one\ntwo &lt;b&gt;\n"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
}

TEST(PageTest, LongNamesAreCutAtTheirBeginning) {
  const std::string name = "decoder:/a/very/long/path/to/some/model.pt?think=1&max_variations=3";
  const std::string svg = BarPlot("t", {{name, 1, 0, 2}});
  EXPECT_THAT(svg, HasSubstr("max_variations=3<"));
  EXPECT_THAT(svg, Not(HasSubstr("decoder:")));
}

TEST(PageTest, EmptyPlotsAreStillPictures) {
  for (const std::string& svg :
       {LinePlot({.title = "t"}), BarPlot("t", {}), SharePlot("t", {{"none", {}}})}) {
    EXPECT_THAT(svg, HasSubstr("<svg"));
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace kibitz::arena
