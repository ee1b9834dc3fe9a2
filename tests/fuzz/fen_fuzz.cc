// Any text as FEN: a reason, or a board whose own text reads back and whose moves can be made.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz::chess;
  if (size == 0) return 0;
  const FenReading reading{.chess960 = (data[0] & 1) != 0,
                           .drop_wrong_castling = (data[0] & 2) != 0,
                           .epd_operations = (data[0] & 4) != 0};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto board = ParseFen(text, reading);
  CHECK(board ? board.reason().empty() : !board.reason().empty());
  if (!board) return 0;
  const auto again = ParseFen(ToFen(*board, {.every_passed_square = true}), {.chess960 = true});
  CHECK(again && *again == *board);
  const MoveList moves = LegalMoves(*board);
  CHECK(static_cast<size_t>(CountLegalMoves(*board)) == moves.size());
  for (Move move : moves) {
    const Board next = board->After(move);
    CHECK(next.key() == next.ComputeKey());
    // The mover may not be left in check.
    CHECK((next.AttackersOf(next.KingOf(board->side_to_move()), next.occupied()) &
           next.pieces(next.side_to_move())) == 0);
  }
  return 0;
}
