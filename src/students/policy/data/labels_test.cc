#include "students/policy/data/labels.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace kibitz::policy {
namespace {

std::map<int, double> LabelOf(const std::vector<Analysis>& analyses, LabelStrategy strategy) {
  std::vector<MoveShare> shares;
  AppendLabel(analyses, false, {.temperature = 50, .strategy = strategy}, shares);
  std::map<int, double> label;
  for (const MoveShare& share : shares) label[share.move] = share.share;
  return label;
}

Analysis Line(uint16_t move, int depth, uint32_t knodes, int32_t cp) {
  return {
      .knodes = knodes, .score = cp, .move = move, .depth_mate = Analysis::DepthMate(depth, false)};
}

// Depth and nodes disagree: each strategy takes the analyses that its name says.
TEST(Labels, DeepestAndNodesDisagree) {
  const std::vector<Analysis> analyses = {Line(1, 50, 100, 30), Line(2, 40, 90'000, 80),
                                          Line(3, 40, 90'000, 80), Line(4, 30, 90'000, 200),
                                          Line(5, 40, 500, 300)};
  EXPECT_EQ(LabelOf(analyses, LabelStrategy::kDeepest), (std::map<int, double>{{1, 1.0}}));
  EXPECT_EQ(LabelOf(analyses, LabelStrategy::kMostNodes),
            (std::map<int, double>{{2, 0.5}, {3, 0.5}}));
  EXPECT_EQ(LabelOf(analyses, LabelStrategy::kBest), (std::map<int, double>{{1, 1.0}}));
  EXPECT_EQ(LabelOf(analyses, LabelStrategy::kAllDepths).size(), 5U);
}

TEST(Labels, NodesIsDeepestWhereNoneAreKnown) {
  const std::vector<Analysis> analyses = {Line(1, 20, 0, 30), Line(2, 30, 0, 10)};
  EXPECT_EQ(LabelOf(analyses, LabelStrategy::kMostNodes),
            LabelOf(analyses, LabelStrategy::kDeepest));
}

}  // namespace
}  // namespace kibitz::policy
