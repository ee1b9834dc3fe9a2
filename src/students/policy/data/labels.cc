#include "students/policy/data/labels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <utility>

namespace kibitz::policy {
namespace {

constexpr int kFarMate = 20;  // Moves; all further ones count alike.

// By which a strategy chooses analyses: those of the highest rank make the label.
using Rank = std::pair<uint32_t, int>;

Rank RankOf(const Analysis& analysis, LabelStrategy strategy) {
  if (strategy == LabelStrategy::kAllDepths) return {};
  return {strategy == LabelStrategy::kMostNodes ? analysis.knodes : 0, analysis.depth()};
}

Rank HighestRank(std::span<const Analysis> analyses, LabelStrategy strategy) {
  Rank highest;
  for (const Analysis& analysis : analyses) highest = std::max(highest, RankOf(analysis, strategy));
  return highest;
}

}  // namespace

Fields FieldsOf(LabelOptions& options) {
  Fields fields;
  fields.Add("temperature", options.temperature,
             "in centipawns: a move this far below the best has 1/e of its share",
             {.min = 1e-3, .max = 1e6});
  fields.AddChoice("strategy", options.strategy,
                   "analyses that make the label: deepest (greatest depth, even on fewer nodes), "
                   "nodes (most nodes), best (hard label of deepest), all",
                   {{"deepest", LabelStrategy::kDeepest},
                    {"nodes", LabelStrategy::kMostNodes},
                    {"best", LabelStrategy::kBest},
                    {"all", LabelStrategy::kAllDepths}});
  return fields;
}

uint16_t Analysis::DepthMate(int64_t depth, bool mate) {
  return static_cast<uint16_t>(std::clamp<int64_t>(depth, 0, kMaxDepth) | (mate ? 1 << 15 : 0));
}

bool ComesBefore(const Analysis& a, const Analysis& b) {
  const auto key = [](const Analysis& x) {
    return std::tuple(-x.depth(), -int64_t{x.knodes}, x.is_mate() ? 0 : 1, -int64_t{x.score},
                      x.move);
  };
  return key(a) < key(b);
}

double MateScore(int moves) {
  const int distance = std::min(std::abs(moves), kFarMate);
  const double score = 10000 - 9000 * static_cast<double>(distance - 1) / 19;
  return moves > 0 ? score : -score;
}

double ScoreOf(const Analysis& analysis) {
  if (!analysis.is_mate()) return analysis.score;
  // Any mate beyond kFarMate is alike; this keeps std::abs from the one number it cannot take.
  return MateScore(std::clamp(analysis.score, -kFarMate, kFarMate));
}

int DeepestOf(std::span<const Analysis> analyses) {
  int deepest = 0;
  for (const Analysis& analysis : analyses) deepest = std::max(deepest, analysis.depth());
  return deepest;
}

bool MatesInOne(std::span<const Analysis> analyses, bool black_to_move) {
  return std::ranges::any_of(analyses, [&](const Analysis& analysis) {
    return analysis.is_mate() && analysis.score == (black_to_move ? -1 : 1);
  });
}

void AppendLabel(std::span<const Analysis> analyses, bool black_to_move,
                 const LabelOptions& options, std::vector<MoveShare>& out) {
  const Rank highest = HighestRank(analyses, options.strategy);
  const auto counts = [&](const Analysis& analysis) {
    return RankOf(analysis, options.strategy) == highest;
  };
  const auto score_of = [&](const Analysis& analysis) {
    return black_to_move ? -ScoreOf(analysis) : ScoreOf(analysis);
  };
  double best = -std::numeric_limits<double>::infinity();
  for (const Analysis& analysis : analyses) {
    if (counts(analysis)) best = std::max(best, score_of(analysis));
  }
  const size_t begin = out.size();
  for (const Analysis& analysis : analyses) {
    if (!counts(analysis)) continue;
    const double below = best - score_of(analysis);
    const double weight = options.strategy == LabelStrategy::kBest
                              ? (below == 0 ? 1.0 : 0.0)
                              : std::exp(-below / options.temperature);
    if (options.strategy == LabelStrategy::kBest && weight == 0) continue;
    const auto same = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                                   [&](const MoveShare& s) { return s.move == analysis.move; });
    if (same == out.end()) {
      out.push_back({analysis.move, weight});
    } else {
      same->share = std::max(same->share, weight);
    }
  }
  double sum = 0;
  for (size_t i = begin; i < out.size(); ++i) sum += out[i].share;
  for (size_t i = begin; i < out.size(); ++i) out[i].share /= sum;
}

}  // namespace kibitz::policy
