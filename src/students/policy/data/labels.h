// The soft label of a position: a probability for each move that its analyses name. Computed when a
// batch is made, so that temperature and strategy can change without touching the data.
//
//   std::vector<MoveShare> shares;
//   AppendLabel(analyses, position.black_to_move(), {.temperature = 50}, shares);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/options.h"

namespace kibitz::policy {

inline constexpr int kMaxDepth = 0x7fff;

// One line (PV) of an engine's answer: its first move and its score.
struct Analysis {
  uint32_t knodes = 0;  // Thousands of nodes of the search; max 2^31 - 1.
  int32_t score = 0;    // From White's point of view: centipawns, or moves to mate.
  uint16_t move = 0;    // In the vocabulary.
  // The depth, from 1 to kMaxDepth; Lichess has depths beyond 255. Bit 15: `score` counts moves to
  // mate.
  uint16_t depth_mate = 0;

  int depth() const { return depth_mate & kMaxDepth; }
  bool is_mate() const { return depth_mate > kMaxDepth; }
  static uint16_t DepthMate(int64_t depth, bool mate);
  bool operator==(const Analysis&) const = default;
};
static_assert(sizeof(Analysis) == 12);

// The order of a position's analyses in a file: deepest first, then most nodes, then by content, so
// that the same analyses give the same bytes in any input order.
bool ComesBefore(const Analysis& a, const Analysis& b);

// Which analyses make the label. Depth and nodes can disagree: in the Lichess database a browser
// may reach depth 50 on few nodes where another searched depth 40 with a hundred times as many.
// kDeepest then takes the first, kMostNodes the second.
enum class LabelStrategy {
  kDeepest,    // Softmax over the analyses at the greatest depth, whatever their nodes.
  kMostNodes,  // Softmax over the analyses with the most nodes; of equal nodes, the deepest.
  kBest,       // As kDeepest, but all probability on the best move; equal moves share it.
  kAllDepths   // Softmax over all analyses.
};

struct LabelOptions {
  double temperature = 50;  // Centipawns: a move that scores so much less has 1/e of the share.
  LabelStrategy strategy = LabelStrategy::kDeepest;
};
Fields FieldsOf(LabelOptions& options);

// 10000 for mate in 1, falling linearly to 1000 for mate in 20 and more; negative for the side that
// is mated. Mate 0 counts as mated, one step beyond mate in 1.
double MateScore(int moves);
// From White's point of view, in centipawns.
double ScoreOf(const Analysis& analysis);

struct MoveShare {
  uint16_t move = 0;
  double share = 0;  // Probability.
};

// Adds a share for each move in the order of its first analysis; they sum to 1. Adds nothing where
// there is no analysis.
void AppendLabel(std::span<const Analysis> analyses, bool black_to_move,
                 const LabelOptions& options, std::vector<MoveShare>& out);

// An analysis finds mate in one for the side to move.
bool MatesInOne(std::span<const Analysis> analyses, bool black_to_move);

// 0 without analyses. They may be in any order.
int DeepestOf(std::span<const Analysis> analyses);

}  // namespace kibitz::policy
