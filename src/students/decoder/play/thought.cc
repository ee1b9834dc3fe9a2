#include "students/decoder/play/thought.h"

#include <algorithm>

#include "games/chess/move_text.h"

namespace kibitz::decoder {

Wdl WdlOf(NodeValue value) {
  const double wl = value.wl;
  const double d = value.d;
  return {
      .win = std::max(0.0, (1 - d + wl) / 2), .draw = d, .loss = std::max(0.0, (1 - d - wl) / 2)};
}

std::string TextOf(const chess::Board& board, const Candidate& candidate) {
  if (candidate.move) return chess::ToText(board, *candidate.move);
  const MoveSquares squares = SquaresOf(candidate.token);
  const bool king = board.PieceAt(squares.from).type() == chess::PieceType::kKing;
  if (king && squares.from.file() == 4 && (squares.to.file() == 7 || squares.to.file() == 0)) {
    // Castling that is not legal: no other move of a king goes so far.
    const int file = squares.to.file() == 7 ? 6 : 2;
    return squares.from.Name() + chess::Square::At(file, squares.to.rank()).Name();
  }
  return std::string(TokenName(candidate.token));
}

LegalLine LegalPart(const Variation& variation) {
  LegalLine line;
  for (const ThoughtNode& node : variation.nodes) {
    if (node.move) {
      line.moves.push_back(*node.move);
    } else {
      ++line.beyond;
    }
  }
  return line;
}

NodeValue RootView(NodeValue value, size_t ply) { return ply % 2 == 0 ? Reversed(value) : value; }

}  // namespace kibitz::decoder
