#include "games/chess/mirror.h"

#include "base/check.h"

namespace kibitz::chess {
namespace {

constexpr int kRanks = 56;  // Exclusive or with a square's index: the rank counted from above.
constexpr int kFiles = 7;   // The file counted from the right.

Square Mirrored(Square square, int mirror) { return Square(square.index() ^ mirror); }

Move Mirrored(Move move, int mirror) {
  return {Mirrored(move.from(), mirror), Mirrored(move.to(), mirror), move.kind()};
}

Board Mirrored(const Board& board, int mirror) {
  const bool swap = mirror == kRanks;
  BoardParts parts;
  for (int i = 0; i < 64; ++i) {
    Piece piece = board.PieceAt(Square(i));
    if (swap && !piece.empty()) piece = {~piece.color(), piece.type()};
    const Square square = Mirrored(Square(i), mirror);
    parts.squares[static_cast<size_t>(square.index())] = piece;
    if ((board.castling_rooks() & Square(i).bit()) != 0) parts.castling_rooks |= square.bit();
  }
  parts.side_to_move = swap ? ~board.side_to_move() : board.side_to_move();
  if (const auto passed = board.passed_square()) parts.en_passant = Mirrored(*passed, mirror);
  parts.halfmove_clock = board.halfmove_clock();
  parts.fullmove_number = board.fullmove_number();
  return Board::Make(parts);
}

}  // namespace

Board SwapColours(const Board& board) { return Mirrored(board, kRanks); }
Move SwapColours(Move move) { return Mirrored(move, kRanks); }

bool CanMirrorFiles(const Board& board) { return board.castling_rooks() == 0; }

Board MirrorFiles(const Board& board) {
  CHECK(CanMirrorFiles(board));
  return Mirrored(board, kFiles);
}
Move MirrorFiles(Move move) { return Mirrored(move, kFiles); }

}  // namespace kibitz::chess
