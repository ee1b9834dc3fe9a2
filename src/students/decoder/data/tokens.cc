#include "students/decoder/data/tokens.h"

#include <optional>

#include "base/check.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::decoder {
namespace {

using chess::Board;
using chess::CastlingSide;
using chess::Color;
using chess::Move;
using chess::Piece;
using chess::PieceType;
using chess::Square;

// By piece code (types.h): empty, pawn to king of White, a gap, pawn to king of Black.
constexpr std::array<TokenId, 16> kPieceTokens = {
    kEmpty, kWhitePawn, kWhiteKnight, kWhiteBishop, kWhiteRook, kWhiteQueen, kWhiteKing, kEmpty,
    kEmpty, kBlackPawn, kBlackKnight, kBlackBishop, kBlackRook, kBlackQueen, kBlackKing, kEmpty};

// Rights as bits K = 1, Q = 2, k = 4, q = 8, in the order of the tokens.
constexpr std::array<uint8_t, 16> kRightsOfToken = {1,  2,  4, 8,  3,  5,  9,  6,
                                                    10, 12, 7, 11, 13, 14, 15, 0};

constexpr std::array<TokenId, 16> MakeTokensOfRights() {
  std::array<TokenId, 16> tokens{};
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[kRightsOfToken[i]] = static_cast<TokenId>(kFirstCastling + i);
  }
  return tokens;
}
constexpr auto kTokenOfRights = MakeTokensOfRights();

struct Right {
  Color color;
  CastlingSide side;
  Square rook;  // At home.
};
constexpr std::array<Right, 4> kRights = {
    {{Color::kWhite, CastlingSide::kKing, Square::At(7, 0)},
     {Color::kWhite, CastlingSide::kQueen, Square::At(0, 0)},
     {Color::kBlack, CastlingSide::kKing, Square::At(7, 7)},
     {Color::kBlack, CastlingSide::kQueen, Square::At(0, 7)}}};

constexpr Square KingHome(Color color) { return Square::At(4, color == Color::kWhite ? 0 : 7); }

size_t RightsOf(const Board& board) {
  const chess::Bitboard rooks = board.castling_rooks();
  size_t rights = 0;
  if (rooks == 0) return rights;
  for (size_t i = 0; i < kRights.size(); ++i) {
    if (board.CastlingRook(kRights[i].color, kRights[i].side)) rights |= size_t{1} << i;
  }
  return rights;
}

std::optional<Piece> PieceOf(TokenId token) {
  for (unsigned code = 0; code < kPieceTokens.size(); ++code) {
    if (kPieceTokens[code] == token) return Piece::FromCode(code);
  }
  return std::nullopt;
}

Bad Misplaced(size_t place, TokenId found, std::string_view expected) {
  if (found >= kVocabularySize) {
    return Bad("token {}: found {}, expected an id below {}", place, found, kVocabularySize);
  }
  return Bad("token {}: found {}, expected {}", place, TokenName(found), expected);
}

// Castling rights need their king and rook at home.
Result<chess::Bitboard> CastlingRooks(const chess::BoardParts& parts, TokenId token) {
  const uint8_t rights = kRightsOfToken[static_cast<size_t>(token - kFirstCastling)];
  chess::Bitboard rooks = 0;
  for (size_t i = 0; i < kRights.size(); ++i) {
    const Right& right = kRights[i];
    if ((rights >> i & 1) == 0) continue;
    const Square king = KingHome(right.color);
    if (parts.squares[static_cast<size_t>(king.index())] != Piece(right.color, PieceType::kKing) ||
        parts.squares[static_cast<size_t>(right.rook.index())] !=
            Piece(right.color, PieceType::kRook)) {
      return Bad("castling rights {} need a king on {} and a rook on {}", TokenName(token),
                 king.Name(), right.rook.Name());
    }
    rooks |= right.rook.bit();
  }
  return rooks;
}

Result<Board> CheckedBoard(const chess::BoardParts& parts) {
  for (Color color : {Color::kWhite, Color::kBlack}) {
    int kings = 0;
    for (Piece piece : parts.squares) kings += piece == Piece(color, PieceType::kKing) ? 1 : 0;
    if (kings != 1) {
      return Bad("{} has {} kings", color == Color::kWhite ? "White" : "Black", kings);
    }
  }
  for (int file = 0; file < 8; ++file) {
    for (int rank : {0, 7}) {
      const Square square = Square::At(file, rank);
      if (parts.squares[static_cast<size_t>(square.index())].type() == PieceType::kPawn) {
        return Bad("a pawn stands on {}", square.Name());
      }
    }
  }
  const Board board = Board::Make(parts);
  const Color us = board.side_to_move();
  if ((board.AttackersOf(board.KingOf(~us), board.occupied()) & board.pieces(us)) != 0) {
    return Bad("the side to move could take the king");
  }
  return board;
}

}  // namespace

void WriteBoardTokens(const Board& board, std::span<TokenId, kBoardTokens> out) {
  out[0] = kStartPos;
  for (int square = 0; square < 64; ++square) {
    out[static_cast<size_t>(square) + 1] = kPieceTokens[board.PieceAt(Square(square)).code()];
  }
  out[65] = kEndPos;
  out[66] = kTokenOfRights[RightsOf(board)];
  out[67] = board.side_to_move() == Color::kWhite ? kWhiteToMove : kBlackToMove;
}

BoardTokens BoardTokensOf(const Board& board) {
  BoardTokens tokens;
  WriteBoardTokens(board, tokens);
  return tokens;
}

PlaceRows BoardPlace::Next(TokenId token) {
  if (IsMove(token)) move_ = SquaresOf(token);
  if (token == kStartThink) root_ = before_;
  if (token == kEndVar && root_) before_ = root_;
  const bool inside = place_ >= 0 && place_ + 1 < kBoardTokens;
  place_ = token == kStartPos ? 0 : inside ? place_ + 1 : -1;
  PlaceRows rows{.place = place_};
  if (place_ < 0) return rows;
  const auto place = static_cast<size_t>(place_);
  reading_[place] = token;
  if (place + 1 == kBoardTokens) before_ = reading_;
  const auto stood = [&](size_t at) { return before_ ? BoardIndex((*before_)[at]) : -1; };
  if (place + 1 < kBoardTokens) rows.before = stood(place + 1);
  if (!move_) return rows;
  // The square after this token has the token's place as its number.
  if (place_ == move_->to.index()) rows.mark = kBoardTokens + move_->from.index();
  if (place_ == move_->from.index()) rows.mark = kBoardTokens + 64 + move_->to.index();
  if (rows.mark < 0) return rows;
  const bool next_is_to = place_ == move_->to.index();
  const int other = stood(1 + static_cast<size_t>((next_is_to ? move_->from : move_->to).index()));
  if (other >= 0) rows.other = kBoardVocabularySize + other;
  return rows;
}

TokenView LineView::Next(TokenId token) {
  const int32_t index = index_++;
  if (token == kStartThink) {
    root_end_ = index + 1;
    line_begin_ = -1;
  } else if (token == kEndThink) {
    root_end_ = -1;
  } else if (root_end_ >= 0 && line_begin_ < 0) {
    line_begin_ = index;
    position_ = root_end_;
  }
  TokenView view = {.position = position_++};
  if (token == kEndVar) line_begin_ = -1;
  if (root_end_ >= 0 && line_begin_ >= 0) {
    view.hidden_begin = root_end_;
    view.hidden_end = line_begin_;
  }
  return view;
}

Result<Board> BoardOf(std::span<const TokenId> tokens) {
  if (tokens.size() != kBoardTokens) return Bad("found {} tokens, expected 68", tokens.size());
  if (tokens[0] != kStartPos) return Misplaced(0, tokens[0], "start_pos");
  chess::BoardParts parts;
  for (size_t square = 0; square < 64; ++square) {
    const auto piece = PieceOf(tokens[square + 1]);
    if (!piece) return Misplaced(square + 1, tokens[square + 1], "a piece or empty");
    parts.squares[square] = *piece;
  }
  if (tokens[65] != kEndPos) return Misplaced(65, tokens[65], "end_pos");
  if (tokens[66] < kFirstCastling || tokens[66] > kNoCastling) {
    return Misplaced(66, tokens[66], "castling rights");
  }
  if (tokens[67] != kWhiteToMove && tokens[67] != kBlackToMove) {
    return Misplaced(67, tokens[67], "white_to_move or black_to_move");
  }
  parts.side_to_move = tokens[67] == kWhiteToMove ? Color::kWhite : Color::kBlack;
  const Result<chess::Bitboard> rooks = CastlingRooks(parts, tokens[66]);
  if (!rooks) return Bad("{}", rooks.reason());
  parts.castling_rooks = *rooks;
  return CheckedBoard(parts);
}

TokenId TokenOf(Move move) {
  // Board moves and the vocabulary both write castling as king takes rook.
  const auto token = MoveTokenOf(move.from(), move.to(), move.promotion());
  CHECK(token.has_value());
  return *token;
}

Result<Move> MoveOf(const Board& board, TokenId token) {
  if (!IsMove(token)) {
    if (token >= kVocabularySize)
      return Bad("found token {}, expected an id below {}", token, kVocabularySize);
    return Bad("found {}, expected a move", TokenName(token));
  }
  const MoveSquares squares = SquaresOf(token);
  const Piece piece = board.PieceAt(squares.from);
  if (!piece.empty()) {
    for (Move move : chess::LegalMovesTo(board, piece.type(), squares.to)) {
      const bool same_promotion =
          move.promotion() == squares.promotion ||
          (move.promotion() == PieceType::kKnight && squares.promotion == PieceType::kNone);
      if (move.from() == squares.from && same_promotion) return move;
    }
  }
  return Bad("move {} is not legal in {}", TokenName(token), chess::ToFen(board));
}

}  // namespace kibitz::decoder
