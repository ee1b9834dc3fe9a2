#include "students/decoder/play/draft.h"

#include <algorithm>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

// The piece a pawn of this colour becomes.
TokenId Promoted(chess::PieceType type, bool white) {
  switch (type) {
    case chess::PieceType::kQueen:
      return white ? kWhiteQueen : kBlackQueen;
    case chess::PieceType::kRook:
      return white ? kWhiteRook : kBlackRook;
    case chess::PieceType::kBishop:
      return white ? kWhiteBishop : kBlackBishop;
    default:
      return white ? kWhiteKnight : kBlackKnight;
  }
}

}  // namespace

BoardTokens DraftBoard(std::span<const TokenId> before, TokenId move,
                       const std::optional<chess::Board>& after) {
  if (after) return BoardTokensOf(*after);
  CHECK(before.size() == kBoardTokens && IsMove(move));
  BoardTokens tokens;
  std::ranges::copy(before, tokens.begin());
  const MoveSquares squares = SquaresOf(move);
  const auto from = static_cast<size_t>(squares.from.index()) + 1;
  const auto to = static_cast<size_t>(squares.to.index()) + 1;
  TokenId piece = tokens[from];
  const bool pawn = piece == kWhitePawn || piece == kBlackPawn;
  if (pawn && (squares.to.rank() == 0 || squares.to.rank() == 7)) {
    piece = Promoted(squares.promotion, piece == kWhitePawn);
  }
  tokens[from] = kEmpty;
  tokens[to] = piece;
  tokens[67] = tokens[67] == kWhiteToMove ? kBlackToMove : kWhiteToMove;
  return tokens;
}

}  // namespace kibitz::decoder
