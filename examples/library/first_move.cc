// Asks a chess policy for its moves in a position: first_move [FEN]
#include <cstdio>

#include "base/shipped.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"
#include "students/policy/play/player.h"

int main(int argc, char** argv) {
  using namespace kibitz;
  const auto board = chess::ParseFen(argc > 1 ? argv[1] : chess::kStartFen);
  if (!board) return std::puts(board.reason().c_str()), 2;
  policy::Player player(
      {.path = FindShipped("models/policy-small").value_or("models/policy-small")});
  for (const policy::LikelyMove& move : player.Predict(*board).moves) {
    std::printf("%-7s %5.1f%%\n", chess::ToSan(*board, move.move).c_str(), 100 * move.probability);
  }
}
