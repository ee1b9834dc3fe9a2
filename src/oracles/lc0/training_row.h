// Rows of lc0's training data (io/tables/lc0_row.h) as positions with their search: the board, the
// moves played and preferred, values, and the visits of every move.
//
//   Lc0Game game = ReadLc0Game(bytes, "game_000000.gz", {}, skipped);
//   for (const Lc0Ply& ply : game.plies) Use(ply.board, ply.played, ply.best_wdl);
//
// Nothing is trusted: what is no position, no legal move or no probability is a reason, not a
// crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/skip_counter.h"
#include "games/chess/board.h"
#include "io/tables/lc0_row.h"
#include "oracles/engines/score.h"

namespace kibitz::oracles {

struct Lc0Visit {
  chess::Move move;
  float share = 0;  // Of the visits.
};

// Values are for the side to move.
struct Lc0Ply {
  int ply = 0;  // Number of the row in its file.
  // Whether the position results from the row before and the move played there.
  bool follows = false;
  chess::Board board;
  chess::Move played;
  chess::Move best;
  Wdl root_wdl;                   // Mean of the search.
  Wdl best_wdl;                   // Of the best move.
  Wdl played_wdl;                 // Of the move played.
  Wdl result;                     // How the game ended.
  uint32_t visits = 0;            // Of the root.
  std::vector<Lc0Visit> visited;  // Moves with visits; only where asked for.
};

struct Lc0Game {
  std::string id;  // The file's name without .gz.
  std::vector<Lc0Ply> plies;
  uint64_t rows = 0;  // In the file, the bad ones included.
};

struct Lc0Reading {
  bool visits = true;  // Fill Lc0Ply::visited, and require that the shares sum to 1.
};

// A game of more bytes, unpacked, is refused: 8031 positions.
inline constexpr size_t kMaxLc0GameBytes = size_t{64} << 20;

// The row's position, with this move number, which rows do not have. Else the reason, out of a few
// dozen: "input format 132 (...)", "illegal move played".
Result<Lc0Ply> DecodeLc0Row(const io::Lc0Row& row, int fullmove_number,
                            const Lc0Reading& reading = {});

// The rows of one file, packed by gzip or not. Bad rows are left out and counted by reason; of a
// damaged file, the rows before the damage are read.
Lc0Game ReadLc0Game(std::string_view bytes, const std::string& name, const Lc0Reading& reading,
                    SkipCounter& skipped);

}  // namespace kibitz::oracles
