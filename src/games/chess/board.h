// A chess position as a 56-byte value. Copy it freely: a move is made by copying.
//
//   Board next = board.After(move);        // `board` is unchanged
//   for (Move m : LegalMoves(next)) ...    // movegen.h
//
// Boards are absolute (White is White) and know no history; a game is a list of boards (rules.h).
// The pieces are held as four bit planes, the bits of each square's piece code (types.h): bits
// 0-2 the type, bit 3 Black. A move then changes all planes by the same few operations, without
// branches on what moved or was taken. Castling rights are the set of rooks that may still
// castle, which covers Chess960 as well.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "games/chess/bitboard.h"
#include "games/chess/types.h"

namespace kibitz::chess {

enum class CastlingSide : uint8_t { kKing, kQueen };

// Where king and rook stand after castling.
struct CastlingTarget {
  Square king;
  Square rook;
};
constexpr CastlingTarget CastlingTargetOf(Color color, CastlingSide side) {
  const int rank = color == Color::kWhite ? 0 : 7;
  if (side == CastlingSide::kKing) return {Square::At(6, rank), Square::At(5, rank)};
  return {Square::At(2, rank), Square::At(3, rank)};
}

// A position in parts, to build a Board from. Nothing is checked here beyond what Board::Make
// says; texts go through ParseFen (fen.h), which does.
struct BoardParts {
  std::array<Piece, 64> squares;
  Color side_to_move = Color::kWhite;
  Bitboard castling_rooks = 0;  // On their own back rank, with the king on it too.
  // The square a pawn just passed by a double step, usable or not.
  std::optional<Square> en_passant;
  int halfmove_clock = 0;  // Half-moves since the last capture or pawn move, 0 to 65535.
  int fullmove_number = 1;
};

class Board {
 public:
  // The usual starting position.
  Board();
  // Needs one king of each colour.
  static Board Make(const BoardParts& parts);

  Color side_to_move() const { return side_to_move_; }
  Bitboard occupied() const { return planes_[0] | planes_[1] | planes_[2]; }
  Bitboard pieces(Color color) const {
    return color == Color::kBlack ? planes_[3] : occupied() & ~planes_[3];
  }
  Bitboard pawns() const { return planes_[0] & ~planes_[1] & ~planes_[2]; }
  Bitboard knights() const { return planes_[1] & ~planes_[0] & ~planes_[2]; }
  Bitboard diagonal_sliders() const { return planes_[0] & (planes_[1] | planes_[2]); }
  Bitboard straight_sliders() const { return planes_[2] & ~planes_[1]; }
  Bitboard kings() const { return planes_[1] & planes_[2]; }
  Bitboard pieces(PieceType type) const;
  Bitboard pieces(Color color, PieceType type) const { return pieces(color) & pieces(type); }
  Piece PieceAt(Square square) const { return Piece::FromCode(CodeAt(square)); }
  Square KingOf(Color color) const { return First(kings() & pieces(color)); }

  Bitboard castling_rooks() const { return castling_rooks_; }
  // The rook this side may still castle with, now or later.
  std::optional<Square> CastlingRook(Color color, CastlingSide side) const;

  // The square passed by the last move's double step, whether or not a pawn can take there.
  std::optional<Square> passed_square() const;
  // The same, but only when an en passant capture is legal.
  std::optional<Square> en_passant() const;

  int halfmove_clock() const { return halfmove_clock_; }
  int fullmove_number() const { return fullmove_number_; }

  // Zobrist key of pieces, side to move, castling rights and legal en passant. Equal keys mean
  // the same position in the sense of the repetition rule.
  uint64_t key() const { return key_; }
  // The same, from scratch; equals key() always.
  uint64_t ComputeKey() const;

  // All pieces of both colours that attack the square, given the occupied squares.
  Bitboard AttackersOf(Square square, Bitboard occupied) const;
  bool InCheck() const;

  // The position after a legal move of the side to move.
  Board After(Move move) const;
  // The same when the side to move is known at compile time.
  template <Color us>
  Board AfterFor(Move move) const;
  // The position with the other side to move, as after a null move. Not when in check.
  Board AfterNull() const;

  // Pawns of the side to move that may take en passant on `passed`, pins and checks considered.
  Bitboard EnPassantCapturers(Square passed) const;

  // Everything equal, counters and the unusable passed square too.
  bool operator==(const Board&) const = default;

 private:
  explicit Board(const BoardParts& parts);

  unsigned CodeAt(Square square) const {
    const int i = square.index();
    return static_cast<unsigned>(((planes_[0] >> i) & 1) | (((planes_[1] >> i) & 1) << 1) |
                                 (((planes_[2] >> i) & 1) << 2) | (((planes_[3] >> i) & 1) << 3));
  }
  void Place(unsigned code, Square square);
  void Remove(Square square);
  void SetCastlingRooks(Bitboard rooks);
  void SetPassedSquare(Square passed);
  void ClearPassedSquare();

  static constexpr uint8_t kNoSquare = 64;

  std::array<Bitboard, 4> planes_{};  // Bits of the piece codes.
  Bitboard castling_rooks_ = 0;
  uint64_t key_ = 0;
  uint16_t halfmove_clock_ = 0;
  uint16_t fullmove_number_ = 1;
  Color side_to_move_ = Color::kWhite;
  uint8_t passed_ = kNoSquare;
  bool en_passant_legal_ = false;
};

static_assert(sizeof(Board) == 56);

}  // namespace kibitz::chess
