#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/san.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using chess::MoveStyle;
using Json = nlohmann::ordered_json;

struct MovesOptions {
  FenInput position;
};

Fields FieldsOf(MovesOptions& options) { return FieldsOf(options.position); }

// Legal moves with their UCI text, sorted by it.
std::vector<std::pair<std::string, chess::Move>> SortedMoves(const Board& board) {
  std::vector<std::pair<std::string, chess::Move>> moves;
  for (chess::Move move : chess::LegalMoves(board)) {
    moves.emplace_back(ToText(board, move, MoveStyle::kUci), move);
  }
  std::sort(moves.begin(), moves.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return moves;
}

Json Answer(const Board& board) {
  Json uci = Json::array();
  Json model = Json::array();
  for (const auto& [text, move] : SortedMoves(board)) {
    uci.push_back(text);
    model.push_back(ToText(board, move, MoveStyle::kModel));
  }
  return {{"uci", std::move(uci)}, {"model", std::move(model)}};
}

int Run(const MovesOptions& options, const Context& context) {
  if (!options.position.fens.empty()) return AnswerEach(options.position, Answer);
  const Board board = BoardOf(options.position);
  if (context.json) {
    PrintJson(Answer(board));
    return 0;
  }
  fmt::print("{:8}{:8}{}\n", "uci", "model", "san");
  for (const auto& [text, move] : SortedMoves(board)) {
    fmt::print("{:8}{:8}{}\n", text, ToText(board, move, MoveStyle::kModel), ToSan(board, move));
  }
  return 0;
}

}  // namespace

Command ChessMoves() {
  return MakeCommand<MovesOptions>(
      {.name = "chess moves",
       .group = "Chess",
       .summary = "list the legal moves in UCI, in the decoder's notation and in SAN",
       .details =
           "Sorted by UCI text. The decoder's notation writes castling as king takes rook and a\n"
           "knight promotion without a suffix. With --json, \"uci\" and \"model\" list the same "
           "moves\n"
           "in the same order.",
       .example = "kibitz chess moves --fen \"4k3/P7/8/8/8/8/8/4K2R w K - 0 1\" --json"},
      Run);
}

}  // namespace kibitz::cli
