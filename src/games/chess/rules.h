// When a game is over. A game is a list of boards, oldest first; the last is the current one.
#pragma once

#include <span>
#include <string_view>

#include "games/chess/board.h"

namespace kibitz::chess {

enum class Ending {
  kNone,
  kCheckmate,             // The side to move has lost.
  kStalemate,             // From here on: a draw.
  kInsufficientMaterial,  // No sequence of moves mates.
  kSeventyFiveMoves,      // Automatic.
  kFivefoldRepetition,    // Automatic.
  kFiftyMoves,            // A player may claim it.
  kThreefoldRepetition,   // A player may claim it.
};

// "checkmate", "fifty-move rule", ...; "" for kNone.
std::string_view NameOf(Ending ending);

bool IsCheckmate(const Board& board);
bool IsStalemate(const Board& board);
// Bare kings, one minor piece, or only bishops of one square colour.
bool IsInsufficientMaterial(const Board& board);

// How often the last position occurred before, in the sense of the repetition rule.
int EarlierOccurrences(std::span<const Board> game);

// The first ending that holds, in the order of the enum. Claims count as endings, as in engine
// matches and on servers.
Ending EndingOf(std::span<const Board> game);
// The same for a position without history.
Ending EndingOf(const Board& board);

}  // namespace kibitz::chess
