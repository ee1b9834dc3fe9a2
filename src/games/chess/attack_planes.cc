#include "games/chess/attack_planes.h"

#include <bit>

#include "games/chess/attacks.h"

namespace kibitz::chess {
namespace {

enum Kind : size_t { kPawn, kKnight, kBishop, kRook, kQueen, kKing };

// The men of one side. The own side counts as White, whoever moves.
struct Side {
  Color color = Color::kWhite;
  std::array<Bitboard, 6> men{};  // By kind.
  Bitboard all = 0;

  Bitboard diagonal() const { return men[kBishop] | men[kQueen]; }
  Bitboard straight() const { return men[kRook] | men[kQueen]; }
};

struct Sides {
  Side own;
  Side enemy;
  Bitboard occupied() const { return own.all | enemy.all; }
};

Sides SidesOf(const MenInView& men) {
  Sides sides;
  sides.own.men = men.own;
  sides.enemy.men = men.enemy;
  sides.enemy.color = Color::kBlack;
  for (Side* side : {&sides.own, &sides.enemy}) {
    for (const Bitboard set : side->men) side->all |= set;
  }
  return sides;
}

struct Reach {
  std::array<Bitboard, 6> by{};  // By kind.
  Bitboard once = 0;             // By one man or more.
  Bitboard twice = 0;            // By two men or more.
};

template <typename Attacks>
void AddAttacks(Kind kind, Bitboard men, const Attacks& attacks, Reach& reach) {
  while (men != 0) {
    const Bitboard squares = attacks(TakeFirst(men));
    reach.twice |= reach.once & squares;
    reach.once |= squares;
    reach.by[kind] |= squares;
  }
}

Reach ReachOf(const Side& side, Bitboard occupied) {
  const auto bishop = [&](Square from) { return BishopAttacks(from, occupied); };
  const auto rook = [&](Square from) { return RookAttacks(from, occupied); };
  const auto queen = [&](Square from) { return bishop(from) | rook(from); };
  Reach reach;
  const Bitboard pawns = side.men[kPawn];
  const Bitboard ahead = side.color == Color::kWhite ? North(pawns) : South(pawns);
  reach.by[kPawn] = reach.once = East(ahead) | West(ahead);
  reach.twice = East(ahead) & West(ahead);
  AddAttacks(kKnight, side.men[kKnight], KnightAttacks, reach);
  AddAttacks(kBishop, side.men[kBishop], bishop, reach);
  AddAttacks(kRook, side.men[kRook], rook, reach);
  AddAttacks(kQueen, side.men[kQueen], queen, reach);
  AddAttacks(kKing, side.men[kKing], KingAttacks, reach);
  return reach;
}

// Men of either side that stand alone between the king and a slider of `from`.
Bitboard Shields(Square king, const Side& from, Bitboard occupied) {
  Bitboard sliders =
      (BishopAttacks(king, 0) & from.diagonal()) | (RookAttacks(king, 0) & from.straight());
  Bitboard shields = 0;
  while (sliders != 0) {
    const Square slider = TakeFirst(sliders);
    const Bitboard between = Through(king, slider) & ~slider.bit() & occupied;
    if (std::has_single_bit(between)) shields |= between;
  }
  return shields;
}

// From where each kind but the king attacks a king of `color`.
std::array<Bitboard, 5> CheckSquares(Square king, Color color, Bitboard occupied) {
  const Bitboard bishop = BishopAttacks(king, occupied);
  const Bitboard rook = RookAttacks(king, occupied);
  return {PawnAttacks(color, king.bit()), KnightAttacks(king), bishop, rook, bishop | rook};
}

Bitboard FlightSquares(Square king, const Side& side, const Side& other, const Reach& reach,
                       Bitboard occupied) {
  Bitboard attacked = reach.once;
  // Squares behind the king count as attacked only where something attacks the king.
  if ((attacked & king.bit()) != 0) attacked = ReachOf(other, occupied & ~king.bit()).once;
  return KingAttacks(king) & ~side.all & ~attacked;
}

}  // namespace

AttackPlanes AttackPlanesOf(const MenInView& men) {
  const Sides both = SidesOf(men);
  const Bitboard occupied = both.occupied();
  const std::array<const Side*, 2> sides = {&both.own, &both.enemy};
  const std::array<Reach, 2> reaches = {ReachOf(both.own, occupied), ReachOf(both.enemy, occupied)};
  AttackPlanes planes{};
  for (size_t i = 0; i < 2; ++i) {
    std::copy(reaches[i].by.begin(), reaches[i].by.end(), planes.begin() + kAttackPlane + 6 * i);
    planes[kTwicePlane + i] = reaches[i].twice;
  }
  for (size_t i = 0; i < 2; ++i) {  // What concerns the king of the other side.
    const Side& side = *sides[i];
    const Side& other = *sides[1 - i];
    if (other.men[kKing] == 0) continue;
    const Square king = First(other.men[kKing]);
    const Bitboard shields = Shields(king, side, occupied);
    planes[kPinnedPlane + 1 - i] = shields & other.all;
    if (i == 0) planes[kUncoverPlane] = shields & side.all;
    const std::array<Bitboard, 5> checks = CheckSquares(king, other.color, occupied);
    std::copy(checks.begin(), checks.end(), planes.begin() + kCheckPlane + 5 * i);
    planes[kFlightPlane + i] = FlightSquares(king, other, side, reaches[i], occupied);
  }
  return planes;
}

AttackPlanes AttackPlanesOf(const Board& board) {
  const Color own = board.side_to_move();
  MenInView men;
  for (size_t kind = kPawn; kind <= kKing; ++kind) {
    men.own[kind] = board.pieces(own, kPieceTypes[kind]);
    men.enemy[kind] = board.pieces(~own, kPieceTypes[kind]);
  }
  if (own == Color::kBlack) {
    for (auto* side : {&men.own, &men.enemy}) {
      for (Bitboard& set : *side) set = __builtin_bswap64(set);
    }
  }
  return AttackPlanesOf(men);
}

}  // namespace kibitz::chess
