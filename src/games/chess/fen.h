// FEN text to Board and back. Reading is strict and says what is wrong; nothing half-loads.
//
//   Result<Board> board = ParseFen("8/8/8/8/8/5k2/6q1/7K w - - 0 1");
//   std::string text = ToFen(*board);
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "games/chess/board.h"

namespace kibitz::chess {

inline constexpr std::string_view kStartFen =
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

struct FenReading {
  // Castling rights by X-FEN and Shredder-FEN: any king and rook squares on the back rank.
  // Without it, rights need the king on e1/e8 and the rook on its corner.
  bool chess960 = false;
  // Rights that the pieces do not support are dropped instead of refused, for old files that
  // keep "KQkq" to the end of the game.
  bool drop_wrong_castling = false;
  // EPD operations may follow the fields: "bm Nf3; id \"WAC.001\";". They are ignored, except that
  // hmvc and fmvn set the counters that the fields leave out.
  bool epd_operations = false;
};

// Four fields (pieces, side, castling, en passant), five (and the half-move clock) or six (and the
// move number). The en passant square may be given after every double step or only when a capture
// exists: both are read.
Result<Board> ParseFen(std::string_view text, const FenReading& reading = {});

struct FenWriting {
  // The passed square after every double step, instead of only when a capture is legal.
  bool every_passed_square = false;
  bool counters = true;  // Six fields; four without.
};

// Castling rights as X-FEN: KQkq unless another rook stands further out, then its file letter.
std::string ToFen(const Board& board, const FenWriting& writing = {});

}  // namespace kibitz::chess
