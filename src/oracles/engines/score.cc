#include "oracles/engines/score.h"

namespace kibitz::oracles {
namespace {

Bound Reversed(Bound bound) {
  switch (bound) {
    case Bound::kLower:
      return Bound::kUpper;
    case Bound::kUpper:
      return Bound::kLower;
    case Bound::kExact:
      break;
  }
  return Bound::kExact;
}

template <View to, View from>
Score<to> Converted(const Score<from>& score, bool reverse) {
  Score<to> result{score.centipawns, score.mate, score.bound, score.wdl};
  if (!reverse) return result;
  if (score.centipawns) result.centipawns = -*score.centipawns;
  if (score.mate) result.mate = Mate{!score.mate->wins, score.mate->moves};
  result.bound = Reversed(score.bound);
  if (score.wdl) result.wdl = WdlPermille{score.wdl->loss, score.wdl->draw, score.wdl->win};
  return result;
}

}  // namespace

WhiteScore ToWhite(const MoverScore& score, chess::Color mover) {
  return Converted<View::kWhite>(score, mover == chess::Color::kBlack);
}

MoverScore ToMover(const WhiteScore& score, chess::Color mover) {
  return Converted<View::kMover>(score, mover == chess::Color::kBlack);
}

}  // namespace kibitz::oracles
