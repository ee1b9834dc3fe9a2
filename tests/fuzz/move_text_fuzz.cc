// "FEN newline text": any text as a move in UCI, the model's notation and SAN, in any position.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/san.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz::chess;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t newline = all.find('\n');
  if (newline == std::string_view::npos) return 0;
  const auto parsed = ParseFen(all.substr(0, newline), {.chess960 = true});
  const Board board = parsed ? *parsed : Board();
  const std::string_view text = all.substr(newline + 1);
  for (MoveStyle style : {MoveStyle::kUci, MoveStyle::kUciRook, MoveStyle::kModel}) {
    const auto move = ParseMove(board, text, style);
    if (!move) continue;
    CHECK(IsLegal(board, *move));
    const auto again = ParseMove(board, ToText(board, *move, style), style);
    CHECK(again && *again == *move);
  }
  if (const auto move = ParseSan(board, text)) {
    CHECK(IsLegal(board, *move));
    const auto again = ParseSan(board, ToSan(board, *move));
    CHECK(again && *again == *move);
  }
  return 0;
}
