// Moves in coordinates, always read and written with the position: "e1g1" is castling only when
// the king stands on e1, and a knight promotion is bare in one notation and "n" in the other.
//
// | style          | castling | promotion to queen / knight | used by                         |
// |----------------|----------|-----------------------------|---------------------------------|
// | kUci           | e1g1     | a7a8q / a7a8n               | engines, puzzles                |
// | kUciRook       | e1h1     | a7a8q / a7a8n               | Lichess evaluations, Chess960   |
// | kModel         | e1h1     | a7a8q / a7a8                | the decoder's vocabulary, lc0   |
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "games/chess/board.h"

namespace kibitz::chess {

enum class MoveStyle { kUci, kUciRook, kModel };

// kUci writes castling as king takes rook where e1g1 would not be clear: unless the king stands on
// the e-file and the rook in its corner.
std::string ToText(const Board& board, Move move, MoveStyle style = MoveStyle::kUci);

// A legal move from its text. Both castling notations are read in every style; a bare promotion
// only in kModel.
Result<Move> ParseMove(const Board& board, std::string_view text,
                       MoveStyle style = MoveStyle::kUci);

}  // namespace kibitz::chess
