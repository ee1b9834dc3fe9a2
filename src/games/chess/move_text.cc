#include "games/chess/move_text.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

// King from e1 by two squares, as castling is written in plain UCI.
bool IsKingTwoSquares(Square from, Square to) {
  return from.file() == 4 && from.rank() == to.rank() && std::abs(from.file() - to.file()) == 2;
}

// Where the text's `to` means castling, the rook it is done with.
std::optional<Square> CastlingRookFor(const Board& board, Square from, Square to) {
  const Color us = board.side_to_move();
  if (board.PieceAt(from) != Piece(us, PieceType::kKing)) return std::nullopt;
  if ((board.castling_rooks() & to.bit() & board.pieces(us)) != 0) return to;
  if (!IsKingTwoSquares(from, to) || from.rank() != (us == Color::kWhite ? 0 : 7)) {
    return std::nullopt;
  }
  return board.CastlingRook(us, to > from ? CastlingSide::kKing : CastlingSide::kQueen);
}

PieceType PromotionOf(char letter) {
  switch (letter) {
    case 'n':
      return PieceType::kKnight;
    case 'b':
      return PieceType::kBishop;
    case 'r':
      return PieceType::kRook;
    case 'q':
      return PieceType::kQueen;
    default:
      return PieceType::kNone;
  }
}

// The squares of a text of four or five letters.
std::optional<std::pair<Square, Square>> ReadSquares(std::string_view text) {
  if (text.size() != 4 && text.size() != 5) return std::nullopt;
  const auto from = Square::FromName(text.substr(0, 2));
  const auto to = Square::FromName(text.substr(2, 2));
  if (!from || !to) return std::nullopt;
  return std::pair(*from, *to);
}

Bad NotLegal(const Board& board, std::string_view text) {
  return Bad("move {} is not legal in {}", text, ToFen(board));
}

}  // namespace

std::string ToText(const Board& board, Move move, MoveStyle style) {
  const Square from = move.from();
  Square to = move.to();
  if (move.kind() == Move::Kind::kCastle && style == MoveStyle::kUci && from.file() == 4 &&
      (to.file() == 0 || to.file() == 7)) {
    to = CastlingTargetOf(board.side_to_move(),
                          to > from ? CastlingSide::kKing : CastlingSide::kQueen)
             .king;
  }
  std::string text = from.Name() + to.Name();
  const PieceType promotion = move.promotion();
  if (promotion == PieceType::kNone) return text;
  if (promotion == PieceType::kKnight && style == MoveStyle::kModel) return text;
  return text + Piece(Color::kBlack, promotion).Letter();
}

Result<Move> ParseMove(const Board& board, std::string_view text, MoveStyle style) {
  const auto squares = ReadSquares(text);
  PieceType promotion = text.size() == 5 ? PromotionOf(text[4]) : PieceType::kNone;
  if (!squares || (text.size() == 5 && promotion == PieceType::kNone)) {
    return Bad("{} is no move such as e2e4 or a7a8q", Quoted(text, 16));
  }
  const auto [from, to] = *squares;
  if (const auto rook = CastlingRookFor(board, from, to)) {
    const Move castle(from, *rook, Move::Kind::kCastle);
    if (promotion != PieceType::kNone || !IsLegal(board, castle)) return NotLegal(board, text);
    return castle;
  }
  const Piece piece = board.PieceAt(from);
  if (piece.empty() || piece.color() != board.side_to_move()) return NotLegal(board, text);
  const bool last_rank = piece.type() == PieceType::kPawn && (to.rank() == 0 || to.rank() == 7);
  if (last_rank && promotion == PieceType::kNone) {
    if (style != MoveStyle::kModel) {
      return Bad("move {} lacks the piece to promote to, such as {}q", text, text);
    }
    promotion = PieceType::kKnight;
  }
  for (Move move : LegalMovesTo(board, piece.type(), to)) {
    if (move.from() == from && move.promotion() == promotion &&
        move.kind() != Move::Kind::kCastle) {
      return move;
    }
  }
  return NotLegal(board, text);
}

}  // namespace kibitz::chess
