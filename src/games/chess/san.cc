#include "games/chess/san.h"

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

char UpperLetter(PieceType type) { return Piece(Color::kWhite, type).Letter(); }

bool IsFile(char c) { return c >= 'a' && c <= 'h'; }
bool IsRank(char c) { return c >= '1' && c <= '8'; }

// The least of file, rank or both that tells the move from others of its kind to the same square.
std::string Disambiguation(const Board& board, Move move, PieceType type) {
  bool any = false;
  bool same_file = false;
  bool same_rank = false;
  for (Move other : LegalMovesTo(board, type, move.to())) {
    if (other.from() == move.from()) continue;
    any = true;
    same_file |= other.from().file() == move.from().file();
    same_rank |= other.from().rank() == move.from().rank();
  }
  if (!any) return "";
  std::string name = move.from().Name();
  if (!same_file) return name.substr(0, 1);
  if (!same_rank) return name.substr(1, 1);
  return name;
}

// What the text of a move says, before it meets a position.
struct SanParts {
  PieceType type = PieceType::kPawn;
  int from_file = -1;  // -1: not said.
  int from_rank = -1;
  Square to;
  PieceType promotion = PieceType::kNone;
};

// Reads from the end: marks, promotion, target square, then what is left of it.
std::optional<SanParts> ReadParts(std::string_view text) {
  SanParts parts;
  if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z') {
    const auto piece = Piece::FromLetter(text.front());
    if (!piece) return std::nullopt;
    parts.type = piece->type();
    text.remove_prefix(1);
  }
  if (!text.empty() && text.back() == ')') text.remove_suffix(1);  // "e8(Q)"
  if (text.size() >= 3 && !IsRank(text.back())) {
    const auto piece = Piece::FromLetter(static_cast<char>(text.back() & ~0x20));
    if (!piece || parts.type != PieceType::kPawn || piece->type() == PieceType::kPawn ||
        piece->type() == PieceType::kKing) {
      return std::nullopt;
    }
    parts.promotion = piece->type();
    text.remove_suffix(1);
    if (text.back() == '=' || text.back() == '(' || text.back() == '/') text.remove_suffix(1);
  }
  if (text.size() < 2) return std::nullopt;
  const auto to = Square::FromName(text.substr(text.size() - 2));
  if (!to) return std::nullopt;
  parts.to = *to;
  text.remove_suffix(2);
  if (!text.empty() && (text.back() == 'x' || text.back() == ':' || text.back() == '-')) {
    text.remove_suffix(1);
  }
  if (!text.empty() && IsFile(text.front())) {
    parts.from_file = text.front() - 'a';
    text.remove_prefix(1);
  }
  if (!text.empty() && IsRank(text.front())) {
    parts.from_rank = text.front() - '1';
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return parts;
}

std::string_view WithoutMarks(std::string_view text) {
  if (text.ends_with("e.p.")) text.remove_suffix(4);
  if (text.ends_with("ep")) text.remove_suffix(2);
  while (!text.empty() && std::string_view("+#!?").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  return text;
}

// 'O-O', 'O-O-O', with zeros or small letters too.
std::optional<CastlingSide> CastlingOf(std::string_view text) {
  auto is_o = [](char c) { return c == 'O' || c == '0' || c == 'o'; };
  if (text.size() != 3 && text.size() != 5) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % 2 == 0 ? !is_o(text[i]) : text[i] != '-') return std::nullopt;
  }
  return text.size() == 3 ? CastlingSide::kKing : CastlingSide::kQueen;
}

Bad NotLegal(const Board& board, std::string_view text) {
  return Bad("move {} is not legal in {}", Quoted(text, 16), ToFen(board));
}

Result<Move> Castle(const Board& board, CastlingSide side, std::string_view text) {
  const auto rook = board.CastlingRook(board.side_to_move(), side);
  if (!rook) return NotLegal(board, text);
  const Move move(board.KingOf(board.side_to_move()), *rook, Move::Kind::kCastle);
  if (!IsLegal(board, move)) return NotLegal(board, text);
  return move;
}

}  // namespace

std::string ToSan(const Board& board, Move move) {
  std::string text;
  const PieceType type = board.PieceAt(move.from()).type();
  if (move.kind() == Move::Kind::kCastle) {
    text = move.to() > move.from() ? "O-O" : "O-O-O";
  } else {
    const bool takes = !board.PieceAt(move.to()).empty() || move.kind() == Move::Kind::kEnPassant;
    if (type == PieceType::kPawn) {
      if (takes) text += move.from().Name()[0];
    } else {
      text += UpperLetter(type) + Disambiguation(board, move, type);
    }
    if (takes) text += 'x';
    text += move.to().Name();
    if (move.is_promotion()) {
      text += '=';
      text += UpperLetter(move.promotion());
    }
  }
  const Board next = board.After(move);
  if (next.InCheck()) text += HasLegalMove(next) ? '+' : '#';
  return text;
}

Result<Move> ParseSan(const Board& board, std::string_view text) {
  const std::string_view bare = WithoutMarks(text);
  if (const auto side = CastlingOf(bare)) return Castle(board, *side, text);
  auto parts = ReadParts(bare);
  if (!parts) return Bad("{} is no move", Quoted(text, 16));

  // Full coordinates without a letter ("g1f3", also "e1g1") may be any piece.
  if (parts->type == PieceType::kPawn && parts->from_file >= 0 && parts->from_rank >= 0) {
    const Square from = Square::At(parts->from_file, parts->from_rank);
    parts->type = board.PieceAt(from).type();
    if (parts->type == PieceType::kKing && from.file() == 4 && from.rank() == parts->to.rank() &&
        (parts->to.file() == 6 || parts->to.file() == 2)) {
      return Castle(board, parts->to > from ? CastlingSide::kKing : CastlingSide::kQueen, text);
    }
  }
  std::optional<Move> found;
  for (Move move : LegalMovesTo(board, parts->type, parts->to)) {
    if (parts->from_file >= 0 && move.from().file() != parts->from_file) continue;
    if (parts->from_rank >= 0 && move.from().rank() != parts->from_rank) continue;
    if (move.promotion() != parts->promotion) continue;
    if (move.kind() == Move::Kind::kCastle) continue;
    if (found) return Bad("move {} may be two moves in {}", Quoted(text, 16), ToFen(board));
    found = move;
  }
  if (!found) return NotLegal(board, text);
  return *found;
}

}  // namespace kibitz::chess
