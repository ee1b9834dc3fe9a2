// The small values the rules are made of: colours, pieces, squares, moves.
//
//   Move push(Square::At(4, 1), Square::At(4, 3), Move::Kind::kDoublePush);  // e2-e4
//   push.to().Name();                                                       // "e4"
//
// A move says what happens on the board; how it is written (e1g1, e1h1, O-O) depends on the
// position and lives in move_text.h and san.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kibitz::chess {

enum class Color : uint8_t { kWhite = 0, kBlack = 1 };

constexpr Color operator~(Color color) {
  return color == Color::kWhite ? Color::kBlack : Color::kWhite;
}

// The numbers are the piece codes of the board's bit planes (board.h): keep them.
enum class PieceType : uint8_t {
  kNone = 0,
  kPawn = 1,
  kKnight = 2,
  kBishop = 3,
  kRook = 4,
  kQueen = 5,
  kKing = 6,
};

inline constexpr std::array kPieceTypes = {PieceType::kPawn, PieceType::kKnight, PieceType::kBishop,
                                           PieceType::kRook, PieceType::kQueen,  PieceType::kKing};

// A piece type with its colour, or nothing. The colour of nothing is White.
class Piece {
 public:
  constexpr Piece() = default;
  constexpr Piece(Color color, PieceType type)
      : code_(static_cast<uint8_t>(static_cast<uint8_t>(type) |
                                   (static_cast<uint8_t>(color) << 3))) {}
  static constexpr Piece FromCode(unsigned code) { return Piece(static_cast<uint8_t>(code)); }
  // "PNBRQKpnbrqk"; nothing for any other letter.
  static std::optional<Piece> FromLetter(char letter);

  constexpr PieceType type() const { return static_cast<PieceType>(code_ & 7); }
  constexpr Color color() const { return static_cast<Color>(code_ >> 3); }
  constexpr uint8_t code() const { return code_; }
  constexpr bool empty() const { return code_ == 0; }
  // The FEN letter; '.' for nothing.
  char Letter() const;

  constexpr bool operator==(const Piece&) const = default;

 private:
  explicit constexpr Piece(uint8_t code) : code_(code) {}
  uint8_t code_ = 0;  // PieceType, plus 8 for Black.
};

// 0 = a1, 7 = h1, 8 = a2, 63 = h8.
class Square {
 public:
  constexpr Square() = default;
  explicit constexpr Square(int index) : index_(static_cast<uint8_t>(index)) {}
  static constexpr Square At(int file, int rank) { return Square(rank * 8 + file); }
  // "e4"; nothing for any other text.
  static std::optional<Square> FromName(std::string_view name);

  constexpr int index() const { return index_; }
  constexpr int file() const { return index_ & 7; }
  constexpr int rank() const { return index_ >> 3; }
  constexpr uint64_t bit() const { return uint64_t{1} << index_; }
  std::string Name() const;

  constexpr auto operator<=>(const Square&) const = default;

 private:
  uint8_t index_ = 0;
};

// Sixteen bits: six from, six to, four kind. Castling is kept as king takes own rook.
class Move {
 public:
  enum class Kind : uint8_t {
    kNormal = 0,
    kDoublePush = 1,
    kEnPassant = 2,
    kCastle = 3,  // `to` is the square of the castling rook.
    kPromoteKnight = 4,
    kPromoteBishop = 5,
    kPromoteRook = 6,
    kPromoteQueen = 7,
  };

  // The null move a1a1; never legal.
  constexpr Move() = default;
  constexpr Move(Square from, Square to, Kind kind = Kind::kNormal)
      : bits_(static_cast<uint16_t>(from.index() | (to.index() << 6) |
                                    (static_cast<int>(kind) << 12))) {}

  static constexpr Kind PromotionKind(PieceType type) {
    return static_cast<Kind>(static_cast<int>(type) + 2);
  }

  constexpr Square from() const { return Square(bits_ & 63); }
  constexpr Square to() const { return Square((bits_ >> 6) & 63); }
  constexpr Kind kind() const { return static_cast<Kind>(bits_ >> 12); }
  constexpr bool is_promotion() const { return (bits_ >> 14) != 0; }
  // kNone unless the move promotes.
  constexpr PieceType promotion() const {
    return is_promotion() ? static_cast<PieceType>((bits_ >> 12) - 2) : PieceType::kNone;
  }
  constexpr uint16_t bits() const { return bits_; }

  constexpr bool operator==(const Move&) const = default;

 private:
  uint16_t bits_ = 0;
};

// Moves on the stack. Sixteen men a side can have at most 15 * 27 + 8 moves, so 512 always fit.
class MoveList {
 public:
  MoveList() noexcept {}  // Leaves the moves unset: clearing them would cost more than filling.

  void Add(Move move) { moves_[size_++] = move; }
  // For a generator: where the next move goes, and the new end after it has written some.
  Move* next() { return moves_.data() + size_; }
  void EndAt(const Move* end) { size_ = static_cast<size_t>(end - moves_.data()); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Move operator[](size_t i) const { return moves_[i]; }
  const Move* begin() const { return moves_.data(); }
  const Move* end() const { return moves_.data() + size_; }

 private:
  size_t size_ = 0;
  union {
    std::array<Move, 512> moves_;
  };
};

}  // namespace kibitz::chess
