#include "games/chess/rules.h"

#include <algorithm>

#include "base/check.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {

std::string_view NameOf(Ending ending) {
  switch (ending) {
    case Ending::kNone:
      return "";
    case Ending::kCheckmate:
      return "checkmate";
    case Ending::kStalemate:
      return "stalemate";
    case Ending::kInsufficientMaterial:
      return "insufficient material";
    case Ending::kSeventyFiveMoves:
      return "seventy-five-move rule";
    case Ending::kFivefoldRepetition:
      return "fivefold repetition";
    case Ending::kFiftyMoves:
      return "fifty-move rule";
    case Ending::kThreefoldRepetition:
      return "threefold repetition";
  }
  return "";
}

bool IsCheckmate(const Board& board) { return board.InCheck() && !HasLegalMove(board); }
bool IsStalemate(const Board& board) { return !board.InCheck() && !HasLegalMove(board); }

bool IsInsufficientMaterial(const Board& board) {
  const Bitboard bishops = board.pieces(PieceType::kBishop);
  const Bitboard knights = board.knights();
  if ((board.occupied() & ~board.kings() & ~bishops & ~knights) != 0) return false;
  if (knights != 0) return PopCount(knights) == 1 && bishops == 0;
  return (bishops & kLightSquares) == 0 || (bishops & ~kLightSquares) == 0;
}

int EarlierOccurrences(std::span<const Board> game) {
  CHECK(!game.empty());
  const Board& current = game.back();
  // Nothing before the last capture or pawn move can be the same position, nor can the other
  // side's turns.
  const size_t reach = std::min(game.size() - 1, static_cast<size_t>(current.halfmove_clock()));
  int count = 0;
  for (size_t back = 4; back <= reach; back += 2) {
    count += game[game.size() - 1 - back].key() == current.key() ? 1 : 0;
  }
  return count;
}

Ending EndingOf(std::span<const Board> game) {
  CHECK(!game.empty());
  const Board& board = game.back();
  if (!HasLegalMove(board)) return board.InCheck() ? Ending::kCheckmate : Ending::kStalemate;
  if (IsInsufficientMaterial(board)) return Ending::kInsufficientMaterial;
  if (board.halfmove_clock() >= 150) return Ending::kSeventyFiveMoves;
  const int earlier = EarlierOccurrences(game);
  if (earlier >= 4) return Ending::kFivefoldRepetition;
  if (board.halfmove_clock() >= 100) return Ending::kFiftyMoves;
  if (earlier >= 2) return Ending::kThreefoldRepetition;
  return Ending::kNone;
}

Ending EndingOf(const Board& board) { return EndingOf(std::span(&board, 1)); }

}  // namespace kibitz::chess
