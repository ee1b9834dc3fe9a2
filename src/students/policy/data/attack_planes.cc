#include "students/policy/data/attack_planes.h"

#include <bit>

#include "games/chess/attacks.h"

namespace kibitz::policy {
namespace {

using chess::Bitboard;
using chess::Color;
using chess::Square;

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

Sides SidesOf(const PackedPosition& position) {
  const bool black = position.black_to_move();
  std::array<Bitboard, 16> sets{};  // By piece code.
  uint64_t bits = position.occupied_bits();
  for (unsigned i = 0; bits != 0 && i < 32; ++i, bits &= bits - 1) {
    const size_t code = position.pieces[i / 2] >> (4 * (i & 1)) & 15U;
    const int square = PackedPosition::SquareOf(std::countr_zero(bits));
    sets[code] |= uint64_t{1} << (black ? square ^ 56 : square);
  }
  Sides sides;
  sides.enemy.color = Color::kBlack;
  for (size_t kind = kPawn; kind <= kKing; ++kind) {
    sides.own.men[kind] = sets[kind + (black ? 9 : 1)];
    sides.enemy.men[kind] = sets[kind + (black ? 1 : 9)];
    sides.own.all |= sides.own.men[kind];
    sides.enemy.all |= sides.enemy.men[kind];
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
    const Bitboard squares = attacks(chess::TakeFirst(men));
    reach.twice |= reach.once & squares;
    reach.once |= squares;
    reach.by[kind] |= squares;
  }
}

Reach ReachOf(const Side& side, Bitboard occupied) {
  const auto bishop = [&](Square from) { return chess::BishopAttacks(from, occupied); };
  const auto rook = [&](Square from) { return chess::RookAttacks(from, occupied); };
  const auto queen = [&](Square from) { return bishop(from) | rook(from); };
  Reach reach;
  const Bitboard pawns = side.men[kPawn];
  const Bitboard ahead = side.color == Color::kWhite ? chess::North(pawns) : chess::South(pawns);
  reach.by[kPawn] = reach.once = chess::East(ahead) | chess::West(ahead);
  reach.twice = chess::East(ahead) & chess::West(ahead);
  AddAttacks(kKnight, side.men[kKnight], chess::KnightAttacks, reach);
  AddAttacks(kBishop, side.men[kBishop], bishop, reach);
  AddAttacks(kRook, side.men[kRook], rook, reach);
  AddAttacks(kQueen, side.men[kQueen], queen, reach);
  AddAttacks(kKing, side.men[kKing], chess::KingAttacks, reach);
  return reach;
}

// Men of either side that stand alone between the king and a slider of `from`.
Bitboard Shields(Square king, const Side& from, Bitboard occupied) {
  Bitboard sliders = (chess::BishopAttacks(king, 0) & from.diagonal()) |
                     (chess::RookAttacks(king, 0) & from.straight());
  Bitboard shields = 0;
  while (sliders != 0) {
    const Square slider = chess::TakeFirst(sliders);
    const Bitboard between = chess::Through(king, slider) & ~slider.bit() & occupied;
    if (std::has_single_bit(between)) shields |= between;
  }
  return shields;
}

// From where each kind but the king attacks a king of `color`.
std::array<Bitboard, 5> CheckSquares(Square king, Color color, Bitboard occupied) {
  const Bitboard bishop = chess::BishopAttacks(king, occupied);
  const Bitboard rook = chess::RookAttacks(king, occupied);
  return {chess::PawnAttacks(color, king.bit()), chess::KnightAttacks(king), bishop, rook,
          bishop | rook};
}

Bitboard FlightSquares(Square king, const Side& side, const Side& other, const Reach& reach,
                       Bitboard occupied) {
  Bitboard attacked = reach.once;
  // Squares behind the king count as attacked only where something attacks the king.
  if ((attacked & king.bit()) != 0) attacked = ReachOf(other, occupied & ~king.bit()).once;
  return chess::KingAttacks(king) & ~side.all & ~attacked;
}

}  // namespace

AttackPlanes AttackPlanesOf(const PackedPosition& position) {
  const Sides both = SidesOf(position);
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
    const Square king = chess::First(other.men[kKing]);
    const Bitboard shields = Shields(king, side, occupied);
    planes[kPinnedPlane + 1 - i] = shields & other.all;
    if (i == 0) planes[kUncoverPlane] = shields & side.all;
    const std::array<Bitboard, 5> checks = CheckSquares(king, other.color, occupied);
    std::copy(checks.begin(), checks.end(), planes.begin() + kCheckPlane + 5 * i);
    planes[kFlightPlane + i] = FlightSquares(king, other, side, reaches[i], occupied);
  }
  return planes;
}

}  // namespace kibitz::policy
