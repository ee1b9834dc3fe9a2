// A position in 28 bytes: the first four fields of a FEN, in their order. Files hold hundreds of
// millions of these (docs/FORMATS.md); planes are computed from them for each batch.
//
//   Result<PackedPosition> position = PackFen("8/8/8/8/8/5k2/6q1/7K w - -");
//   chess::Board board = BoardOf(*position);
//
// Equal positions have equal bytes: the en passant square is kept only where a capture is legal,
// castling rights only where king and rook stand, and counters not at all.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "games/chess/board.h"

namespace kibitz::policy {

struct PackedPosition {
  // Bit i, the low word first: square i as a FEN lists them (a8 = 0, h8 = 7, h1 = 63) has a piece.
  std::array<uint32_t, 2> occupied{};
  // Four bits for each of them in turn, low ones first: chess::Piece::code().
  std::array<uint8_t, 16> pieces{};
  uint8_t state = 0;       // Bit 0: Black to move. Bits 1 to 4: rights K, Q, k, q.
  uint8_t en_passant = 0;  // 0: none; else the file, from 1.
  uint16_t analyses = 0;   // In a file: how many belong to it. Not part of the position.

  bool black_to_move() const { return (state & 1) != 0; }
  bool castling(int right) const { return (state >> (right + 1) & 1) != 0; }  // 0 to 3: K, Q, k, q.
  uint64_t occupied_bits() const { return occupied[0] | uint64_t{occupied[1]} << 32; }
  // The square of bit i, and back.
  static constexpr int SquareOf(int bit) { return bit ^ 56; }
  // What stands on a square (a1 = 0): chess::Piece::code(), 0 for nothing.
  unsigned CodeAt(int square) const;
  // -1 without one.
  int en_passant_square() const {
    return en_passant == 0 ? -1 : (black_to_move() ? 16 : 40) + en_passant - 1;
  }
};
static_assert(sizeof(PackedPosition) == 28 && alignof(PackedPosition) == 4);

// All but the count of analyses.
bool SamePosition(const PackedPosition& a, const PackedPosition& b);
// Files are sorted by it, which shuffles them, and it decides a position's split. The same in every
// build.
uint64_t HashOf(const PackedPosition& position);

// Four or six fields, read as chess::ParseFen does; castling rights that the pieces do not support
// are dropped. Does not check whether the side not to move is in check.
Result<PackedPosition> PackFen(std::string_view fen);
PackedPosition Pack(const chess::Board& board);

// Whether the bytes are a position: pieces as counted, one king each, no pawn on a last rank,
// castling rights and en passant as the pieces allow. For rows of untrusted files.
bool IsSound(const PackedPosition& position);
// Needs one king of each colour.
chess::Board BoardOf(const PackedPosition& position);

}  // namespace kibitz::policy
