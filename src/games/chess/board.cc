#include "games/chess/board.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "games/chess/attacks.h"
#include "games/chess/zobrist.h"

namespace kibitz::chess {
namespace {

using zobrist::kNumbers;
using zobrist::OfPiece;

BoardParts StartingParts() {
  using enum PieceType;
  constexpr std::array kArray = {kRook, kKnight, kBishop, kQueen, kKing, kBishop, kKnight, kRook};
  BoardParts parts;
  for (size_t file = 0; file < 8; ++file) {
    parts.squares[file] = Piece(Color::kWhite, kArray[file]);
    parts.squares[8 + file] = Piece(Color::kWhite, kPawn);
    parts.squares[48 + file] = Piece(Color::kBlack, kPawn);
    parts.squares[56 + file] = Piece(Color::kBlack, kArray[file]);
  }
  parts.castling_rooks = 0x8100000000000081;
  return parts;
}

uint64_t CastlingNumber(Bitboard rooks) {
  uint64_t number = 0;
  while (rooks != 0)
    number ^= kNumbers.castling_rook[static_cast<size_t>(TakeFirst(rooks).index())];
  return number;
}

// Bit `bit` of the piece codes of all squares. A product gathers the lowest bits of eight bytes in
// the highest byte.
Bitboard PlaneOf(const std::array<Piece, 64>& squares, int bit) {
  static_assert(sizeof(Piece) == 1 && std::endian::native == std::endian::little);
  Bitboard plane = 0;
  for (size_t rank = 0; rank < 8; ++rank) {
    uint64_t codes = 0;
    std::memcpy(&codes, &squares[8 * rank], sizeof(codes));
    const uint64_t lowest = codes >> bit & 0x0101010101010101;
    plane |= lowest * 0x0102040810204080 >> 56 << (8 * rank);
  }
  return plane;
}

// One more, if so; stays at the highest value.
uint16_t Increased(uint16_t counter, bool so) {
  return static_cast<uint16_t>(counter + (so && counter != 65535 ? 1 : 0));
}

}  // namespace

Board::Board() {
  static const Board start(StartingParts());
  *this = start;
}

Board Board::Make(const BoardParts& parts) { return Board(parts); }

Board::Board(const BoardParts& parts)
    : halfmove_clock_(static_cast<uint16_t>(parts.halfmove_clock)),
      fullmove_number_(static_cast<uint16_t>(parts.fullmove_number)),
      side_to_move_(parts.side_to_move) {
  for (size_t plane = 0; plane < planes_.size(); ++plane) {
    planes_[plane] = PlaneOf(parts.squares, static_cast<int>(plane));
  }
  CHECK(PopCount(pieces(Color::kWhite, PieceType::kKing)) == 1 &&
        PopCount(pieces(Color::kBlack, PieceType::kKing)) == 1);
  castling_rooks_ = parts.castling_rooks;
  key_ = ComputeKey();
  if (parts.en_passant) SetPassedSquare(*parts.en_passant);
}

Bitboard Board::pieces(PieceType type) const {
  const auto code = static_cast<unsigned>(type);
  return (planes_[0] ^ ((code & 1) - Bitboard{1})) &
         (planes_[1] ^ (((code >> 1) & 1) - Bitboard{1})) &
         (planes_[2] ^ ((code >> 2) - Bitboard{1}));
}

std::optional<Square> Board::CastlingRook(Color color, CastlingSide side) const {
  const Bitboard mine = castling_rooks_ & BackRank(color);
  const Bitboard below_king = KingOf(color).bit() - 1;
  const Bitboard rook = side == CastlingSide::kQueen ? mine & below_king : mine & ~below_king;
  if (rook == 0) return std::nullopt;
  return First(rook);
}

std::optional<Square> Board::passed_square() const {
  if (passed_ == kNoSquare) return std::nullopt;
  return Square(passed_);
}

std::optional<Square> Board::en_passant() const {
  if (!en_passant_legal_) return std::nullopt;
  return Square(passed_);
}

uint64_t Board::ComputeKey() const {
  uint64_t key = CastlingNumber(castling_rooks_);
  for (Bitboard rest = occupied(); rest != 0;) {
    const Square square = TakeFirst(rest);
    key ^= OfPiece(CodeAt(square), square);
  }
  if (side_to_move_ == Color::kBlack) key ^= kNumbers.black_to_move;
  if (en_passant_legal_) key ^= kNumbers.en_passant[passed_ & 7];
  return key;
}

Bitboard Board::AttackersOf(Square square, Bitboard occupied) const {
  const Bitboard black = planes_[3];
  return (PawnAttacks(Color::kWhite, square.bit()) & pawns() & black) |
         (PawnAttacks(Color::kBlack, square.bit()) & pawns() & ~black) |
         (KnightAttacks(square) & knights()) | (KingAttacks(square) & kings()) |
         (BishopAttacks(square, occupied) & diagonal_sliders()) |
         (RookAttacks(square, occupied) & straight_sliders());
}

bool Board::InCheck() const {
  return (AttackersOf(KingOf(side_to_move_), occupied()) & pieces(~side_to_move_)) != 0;
}

Bitboard Board::EnPassantCapturers(Square passed) const {
  const Color us = side_to_move_;
  const Square taken(passed.index() ^ 8);  // The pawn that passed stands just behind.
  Bitboard candidates = PawnAttacks(~us, passed.bit()) & pawns() & pieces(us);
  Bitboard capturers = 0;
  while (candidates != 0) {
    const Square from = TakeFirst(candidates);
    const Bitboard after = (occupied() ^ from.bit() ^ taken.bit()) | passed.bit();
    const Bitboard enemies = pieces(~us) & ~taken.bit();
    if ((AttackersOf(KingOf(us), after) & enemies) == 0) capturers |= from.bit();
  }
  return capturers;
}

inline void Board::Place(unsigned code, Square square) {
  for (size_t i = 0; i < 4; ++i) planes_[i] |= Bitboard{(code >> i) & 1} << square.index();
}

inline void Board::Remove(Square square) {
  for (Bitboard& plane : planes_) plane &= ~square.bit();
}

inline void Board::SetCastlingRooks(Bitboard rooks) {
  if (rooks == castling_rooks_) return;
  key_ ^= CastlingNumber(rooks ^ castling_rooks_);
  castling_rooks_ = rooks;
}

inline void Board::ClearPassedSquare() {
  if (en_passant_legal_) key_ ^= kNumbers.en_passant[passed_ & 7];
  passed_ = kNoSquare;
  en_passant_legal_ = false;
}

// Call with the side to move being the one that may capture.
inline void Board::SetPassedSquare(Square passed) {
  passed_ = static_cast<uint8_t>(passed.index());
  const Bitboard near = PawnAttacks(~side_to_move_, passed.bit()) & pawns() & pieces(side_to_move_);
  if (near == 0 || EnPassantCapturers(passed) == 0) return;
  en_passant_legal_ = true;
  key_ ^= kNumbers.en_passant[static_cast<size_t>(passed.file())];
}

template <Color us>
Board Board::AfterFor(Move move) const {
  constexpr int kForward = us == Color::kWhite ? 8 : -8;
  const Square from = move.from();
  const Square to = move.to();
  const unsigned moved = CodeAt(from);
  const unsigned taken = CodeAt(to);

  Board next = *this;
  next.ClearPassedSquare();
  next.side_to_move_ = ~us;
  next.key_ ^= kNumbers.black_to_move;
  next.fullmove_number_ = Increased(fullmove_number_, us == Color::kBlack);

  const auto type = static_cast<PieceType>(moved & 7);
  Bitboard rooks = castling_rooks_ & ~(from.bit() | to.bit());
  if (type == PieceType::kKing) rooks &= ~BackRank(us);
  next.SetCastlingRooks(rooks);

  if (move.kind() == Move::Kind::kCastle) [[unlikely]] {
    const auto target =
        CastlingTargetOf(us, to > from ? CastlingSide::kKing : CastlingSide::kQueen);
    next.Remove(from);
    next.Remove(to);
    next.Place(moved, target.king);
    next.Place(taken, target.rook);
    next.key_ ^= OfPiece(moved, from) ^ OfPiece(moved, target.king) ^ OfPiece(taken, to) ^
                 OfPiece(taken, target.rook);
    next.halfmove_clock_ = Increased(halfmove_clock_, true);
    return next;
  }

  const unsigned placed = move.is_promotion() ? Piece(us, move.promotion()).code() : moved;
  const Bitboard keep = ~(from.bit() | to.bit());
  for (size_t i = 0; i < 4; ++i) {
    next.planes_[i] = (planes_[i] & keep) | (Bitboard{(placed >> i) & 1} << to.index());
  }
  next.key_ ^= OfPiece(moved, from) ^ OfPiece(placed, to) ^ OfPiece(taken, to);
  const bool irreversible = type == PieceType::kPawn || taken != 0;
  next.halfmove_clock_ = irreversible ? uint16_t{0} : Increased(halfmove_clock_, true);

  if (move.kind() == Move::Kind::kEnPassant) [[unlikely]] {
    const Square passer(to.index() - kForward);
    next.Remove(passer);
    next.key_ ^= OfPiece(Piece(~us, PieceType::kPawn).code(), passer);
  } else if (move.kind() == Move::Kind::kDoublePush) {
    next.SetPassedSquare(Square(from.index() + kForward));
  }
  return next;
}

template Board Board::AfterFor<Color::kWhite>(Move) const;
template Board Board::AfterFor<Color::kBlack>(Move) const;

Board Board::After(Move move) const {
  return side_to_move_ == Color::kWhite ? AfterFor<Color::kWhite>(move)
                                        : AfterFor<Color::kBlack>(move);
}

Board Board::AfterNull() const {
  Board next = *this;
  next.ClearPassedSquare();
  next.side_to_move_ = ~side_to_move_;
  next.key_ ^= kNumbers.black_to_move;
  next.halfmove_clock_ = Increased(halfmove_clock_, true);
  next.fullmove_number_ = Increased(fullmove_number_, side_to_move_ == Color::kBlack);
  return next;
}

}  // namespace kibitz::chess
