// What the pieces of a position attack, as inputs of a network: a small one does not find pins,
// checks and flight squares by itself.
//
//   const AttackPlanes planes = AttackPlanesOf(board);
//   Bitboard pinned = planes[kPinnedPlane];                 // Own men; the enemy's are behind.
//
// Sets of squares (a1 = bit 0) as the side to move sees the board: when Black moves, ranks are
// mirrored. "Own" is the side to move.
#pragma once

#include <array>

#include "games/chess/bitboard.h"
#include "games/chess/board.h"

namespace kibitz::chess {

// Where each group of planes begins. Pawn, knight, bishop, rook, queen, king is the order of
// pieces; own comes before the enemy's.
inline constexpr int kAttackPlane = 0;    // 12: attacked by a kind of piece, own men included.
inline constexpr int kTwicePlane = 12;    // 2: attacked by two or more men of one side.
inline constexpr int kPinnedPlane = 14;   // 2: men pinned to their king.
inline constexpr int kCheckPlane = 16;    // 10: from where a pawn ... queen attacks the other king.
inline constexpr int kFlightPlane = 26;   // 2: flight squares of the enemy king, of the own one.
inline constexpr int kUncoverPlane = 28;  // 1: own men that uncover a check when they leave.
inline constexpr int kAttackPlanes = 29;

using AttackPlanes = std::array<Bitboard, kAttackPlanes>;

// The men of both sides: pawns, knights, bishops, rooks, queens, kings, as the side to move sees
// the board. Any sets will do.
struct MenInView {
  std::array<Bitboard, 6> own{};
  std::array<Bitboard, 6> enemy{};
};

// A flight square of a king is next to it, without a man of its side and not attacked by the other,
// also not through the king itself. A king may uncover a check as well. Planes of a missing king
// are empty.
AttackPlanes AttackPlanesOf(const MenInView& men);
AttackPlanes AttackPlanesOf(const Board& board);

}  // namespace kibitz::chess
