#include "oracles/lc0/policy_index.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

namespace kibitz::oracles {
namespace {

using chess::Color;
using chess::Move;
using chess::PieceType;
using chess::Square;

struct Step {
  int file;
  int rank;
};
constexpr std::array<Step, 8> kDirections = {
    {{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};
constexpr std::array<Step, 8> kKnightSteps = {
    {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}}};
constexpr int kKnightPlanes = 56;
constexpr int kPromotionPlanes = 64;
constexpr int kPlainMoves = 1792;

constexpr int Size(int x) { return x < 0 ? -x : x; }
constexpr bool IsKnightStep(int files, int ranks) { return Size(files) * Size(ranks) == 2; }
constexpr bool IsQueenStep(int files, int ranks) {
  return (files != 0 || ranks != 0) && (files == 0 || ranks == 0 || Size(files) == Size(ranks));
}

constexpr size_t PairOf(int from, int to) {
  return static_cast<size_t>(from) * 64 + static_cast<size_t>(to);
}

// By PairOf; -1 where no piece moves so.
constexpr std::array<int16_t, 4096> MakePlainIndexes() {
  std::array<int16_t, 4096> indexes{};
  int16_t next = 0;
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      const int files = to % 8 - from % 8;
      const int ranks = to / 8 - from / 8;
      const bool moves = IsKnightStep(files, ranks) || IsQueenStep(files, ranks);
      indexes[PairOf(from, to)] = moves ? next++ : int16_t{-1};
    }
  }
  return indexes;
}
constexpr std::array<int16_t, 4096> kPlainIndexes = MakePlainIndexes();
static_assert(*std::max_element(kPlainIndexes.begin(), kPlainIndexes.end()) == kPlainMoves - 1);

Square SeenBy(Color mover, Square square) {
  return mover == Color::kWhite ? square : Square(square.index() ^ 56);
}

// 0, 1, 2 in `order` for a promotion that has a number of its own; -1 for all other moves.
int PromotionNumber(Move move, std::array<PieceType, 3> order) {
  const auto found = std::ranges::find(order, move.promotion());
  return found == order.end() ? -1 : static_cast<int>(found - order.begin());
}

}  // namespace

int Lc0MoveIndex(Color mover, Move move) {
  const Square from = SeenBy(mover, move.from());
  const Square to = SeenBy(mover, move.to());
  const int promotion =
      PromotionNumber(move, {PieceType::kQueen, PieceType::kRook, PieceType::kBishop});
  if (promotion < 0) return kPlainIndexes[PairOf(from.index(), to.index())];
  // From the a-file two last squares, from the others three.
  const int lanes = from.file() * 3 + to.file() - from.file();
  return kPlainMoves + lanes * 3 + promotion;
}

Lc0PlanePlace Lc0PlaceOf(Color mover, Move move) {
  const Square from = SeenBy(mover, move.from());
  const Square to = SeenBy(mover, move.to());
  const int files = to.file() - from.file();
  const int ranks = to.rank() - from.rank();
  const int promotion =
      PromotionNumber(move, {PieceType::kRook, PieceType::kBishop, PieceType::kQueen});
  if (promotion >= 0) return {kPromotionPlanes + (files + 1) * 3 + promotion, from.index()};
  for (size_t i = 0; i < kKnightSteps.size(); ++i) {
    if (kKnightSteps[i].file == files && kKnightSteps[i].rank == ranks) {
      return {kKnightPlanes + static_cast<int>(i), from.index()};
    }
  }
  const int distance = std::max(std::abs(files), std::abs(ranks));
  for (size_t i = 0; i < kDirections.size(); ++i) {
    if (kDirections[i].file * distance == files && kDirections[i].rank * distance == ranks) {
      return {static_cast<int>(i) * 7 + distance - 1, from.index()};
    }
  }
  return {0, from.index()};  // No piece moves so.
}

}  // namespace kibitz::oracles
