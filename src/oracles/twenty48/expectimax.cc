#include "oracles/twenty48/expectimax.h"

#include <algorithm>

#include "base/check.h"
#include "games/twenty48/spawn.h"

namespace kibitz::oracles {

using twenty48::Board;
using twenty48::Slid;

Expectimax::Expectimax(const AfterstateValue& value, const ExpectimaxOptions& options)
    : value_(value), options_(options), points_weight_(value.InPoints() ? 1 : 0) {
  CHECK(options.depth >= 1);
  if (options.table_bits > 0) table_.resize(size_t{1} << options.table_bits);
}

SearchResult Expectimax::Search(const Board& board) {
  SearchResult result;
  const std::array<Slid, 4> slides = twenty48::SlideAll(board);
  for (size_t i = 0; i < slides.size(); ++i) {
    if (!slides[i].legal(board)) continue;
    const double value =
        points_weight_ * slides[i].points + Chance(slides[i].board, options_.depth - 1);
    result.values[i] = value;
    if (!result.best || value > *result.values[static_cast<size_t>(*result.best)]) {
      result.best = twenty48::kMoves[i];
    }
  }
  return result;
}

Expectimax::Entry* Expectimax::Slot(const Board& afterstate, int depth) {
  uint64_t hash = (afterstate.packed() ^ uint64_t{afterstate.extra()} << 7) +
                  static_cast<uint64_t>(depth) * 0x9E3779B97F4A7C15;
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93;
  return &table_[hash >> (64 - options_.table_bits)];
}

double Expectimax::Chance(const Board& afterstate, int depth) {
  if (depth == 0) {
    float value = 0;
    value_.Evaluate({&afterstate, 1}, {&value, 1});
    ++evaluations_;
    return value;
  }
  if (table_.empty()) return AverageOverTiles(afterstate, depth);
  Entry* entry = Slot(afterstate, depth);
  if (entry->depth == depth && entry->packed == afterstate.packed() &&
      entry->extra == afterstate.extra()) {
    return entry->value;
  }
  const double value = AverageOverTiles(afterstate, depth);
  *entry = {afterstate.packed(), afterstate.extra(), depth, value};
  return value;
}

double Expectimax::AverageOverTiles(const Board& afterstate, int depth) {
  double twos = 0;
  double fours = 0;
  for (uint64_t empty = afterstate.EmptyNibbles(); empty != 0; empty &= empty - 1) {
    const uint64_t two = empty & (~empty + 1);  // A nibble's lowest bit is rank 1 in that cell.
    twos += Best(Board::FromBits(afterstate.packed() | two, afterstate.extra()), depth);
    fours += Best(Board::FromBits(afterstate.packed() | two << 1, afterstate.extra()), depth);
  }
  return (twenty48::kChanceOfTwo * twos + (1 - twenty48::kChanceOfTwo) * fours) /
         afterstate.CountEmpty();
}

double Expectimax::Best(const Board& board, int depth) {
  if (depth == 1) return BestByEvaluation(board);
  double best = 0;
  bool any = false;
  for (const Slid& slid : twenty48::SlideAll(board)) {
    if (!slid.legal(board)) continue;
    const double value = points_weight_ * slid.points + Chance(slid.board, depth - 1);
    best = any ? std::max(best, value) : value;
    any = true;
  }
  return best;
}

// The last move: evaluates all slides in one call.
double Expectimax::BestByEvaluation(const Board& board) {
  std::array<Board, 4> boards;
  std::array<double, 4> points{};
  size_t count = 0;
  const std::array<Slid, 4> slides = twenty48::SlideAll(board);
  for (const Slid& slid : slides) {
    if (!slid.legal(board)) continue;
    boards[count] = slid.board;
    points[count++] = points_weight_ * slid.points;
  }
  std::array<float, 4> values{};
  value_.Evaluate({boards.data(), count}, {values.data(), count});
  evaluations_ += count;
  double best = 0;
  for (size_t i = 0; i < count; ++i) {
    best = i == 0 ? points[i] + values[i] : std::max(best, points[i] + values[i]);
  }
  return best;
}

}  // namespace kibitz::oracles
