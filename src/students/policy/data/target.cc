#include "students/policy/data/target.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace kibitz::policy {

namespace {

// Numbers of moves as a network has them.
class Numbering {
 public:
  Numbering(const Sample& sample, const Vocabulary& vocabulary, bool flip)
      : vocabulary_(vocabulary), flipped_(flip && sample.position.black_to_move()) {}

  // kNoMove for a move that the network cannot answer.
  uint16_t Of(uint16_t move) const {
    if (move >= vocabulary_.size()) return kNoMove;
    return flipped_ ? vocabulary_.Flipped(move) : move;
  }
  bool Has(const Analysis& analysis) const { return Of(analysis.move) != kNoMove; }

 private:
  const Vocabulary& vocabulary_;
  bool flipped_;
};

}  // namespace

int UsableDepth(const Sample& sample, const Vocabulary& vocabulary, bool flip) {
  const Numbering numbers(sample, vocabulary, flip);
  int depth = -1;
  for (const Analysis& analysis : sample.analyses) {
    if (numbers.Has(analysis)) depth = std::max(depth, analysis.depth());
  }
  return depth;
}

bool MakeTarget(const Sample& sample, const Vocabulary& vocabulary, const TargetOptions& options,
                Target& out) {
  const Numbering numbers(sample, vocabulary, options.flip);
  std::span<const Analysis> used = sample.analyses;
  std::vector<Analysis> inside;  // Only filled where some are outside.
  out.outside = static_cast<uint32_t>(std::count_if(
      used.begin(), used.end(), [&](const Analysis& analysis) { return !numbers.Has(analysis); }));
  if (out.outside > 0) {
    std::copy_if(used.begin(), used.end(), std::back_inserter(inside),
                 [&](const Analysis& analysis) { return numbers.Has(analysis); });
    used = inside;
  }
  out.shares.clear();
  out.best = 0;
  AppendLabel(used, sample.position.black_to_move(), options.label, out.shares);
  double best_share = -1;
  for (MoveShare& share : out.shares) {
    share.move = numbers.Of(share.move);
    if (share.share <= best_share) continue;
    out.best = share.move;
    best_share = share.share;
  }
  return !out.shares.empty();
}

}  // namespace kibitz::policy
