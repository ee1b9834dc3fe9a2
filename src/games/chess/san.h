// Standard algebraic notation: "Nbd7", "exd8=Q+", "O-O-O". Writing is exact; reading also takes
// what files really contain: missing or superfluous marks (x + # = !?), zeros for castling,
// more disambiguation than needed, "e8Q", "e2-e4", "e.p.", coordinates.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "games/chess/board.h"

namespace kibitz::chess {

std::string ToSan(const Board& board, Move move);

Result<Move> ParseSan(const Board& board, std::string_view text);

}  // namespace kibitz::chess
