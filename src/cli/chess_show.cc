#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using Json = nlohmann::ordered_json;

struct ShowOptions {
  FenInput position;
  std::string moves;
  bool flip = false;
  bool ascii = false;
};

Fields FieldsOf(ShowOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.position));
  AddMoves(fields, options.moves, "moves to play first, in UCI or SAN");
  fields.Add("flip", options.flip, "draw Black at the bottom");
  fields.Add("ascii", options.ascii, "draw pieces as letters instead of symbols");
  return fields;
}

std::vector<std::string> SortedSan(const Board& board) {
  std::vector<std::string> moves;
  for (chess::Move move : chess::LegalMoves(board)) moves.push_back(ToSan(board, move));
  std::sort(moves.begin(), moves.end());
  return moves;
}

// All boards of a game, the start first, and its last move.
struct Game {
  std::vector<Board> boards;
  std::optional<chess::Move> last_move;
};

Game Play(const Board& start, const std::string& moves) {
  Game game{{start}, {}};
  for (chess::Move move : MovesOf(start, moves)) {
    game.last_move = move;
    game.boards.push_back(game.boards.back().After(move));
  }
  return game;
}

Json Answer(const Game& game) {
  const Board& board = game.boards.back();
  const auto ending = chess::EndingOf(game.boards);
  const auto passed = board.en_passant();
  return {{"fen", ToFen(board)},
          {"side_to_move", board.side_to_move() == chess::Color::kWhite ? "white" : "black"},
          {"in_check", board.InCheck()},
          {"ending", ending == chess::Ending::kNone ? Json() : Json(NameOf(ending))},
          {"en_passant", passed ? Json(passed->Name()) : Json()},
          {"halfmove_clock", board.halfmove_clock()},
          {"fullmove_number", board.fullmove_number()},
          {"key", fmt::format("{:016x}", board.key())},
          {"legal_moves", SortedSan(board)}};
}

// "castling  White O-O, O-O-O; Black O-O"
std::string CastlingLine(const Board& board) {
  std::string text;
  for (auto color : {chess::Color::kWhite, chess::Color::kBlack}) {
    std::string sides;
    if (board.CastlingRook(color, chess::CastlingSide::kKing)) sides += " O-O";
    if (board.CastlingRook(color, chess::CastlingSide::kQueen)) sides += " O-O-O";
    if (sides.empty()) continue;
    text += text.empty() ? "" : ", ";
    text += (color == chess::Color::kWhite ? "White" : "Black") + sides;
  }
  return text.empty() ? "none" : text;
}

void PrintMoves(const std::vector<std::string>& moves) {
  std::string line = "   ";
  for (const std::string& move : moves) {
    if (line.size() + move.size() > 76) {
      fmt::print("{}\n", line);
      line = "   ";
    }
    line += " " + move;
  }
  if (!moves.empty()) fmt::print("{}\n", line);
}

int Run(const ShowOptions& options, const Context& context) {
  if (!options.position.fens.empty()) {
    return AnswerEach(options.position,
                      [&](const Board& board) { return Answer(Play(board, options.moves)); });
  }
  const Game game = Play(BoardOf(options.position), options.moves);
  const Board& board = game.boards.back();
  if (context.json) {
    PrintJson(Answer(game));
    return 0;
  }
  fmt::print("\n{}\n", Diagram(board, {.color = context.color,
                                       .unicode = !options.ascii,
                                       .flipped = options.flip,
                                       .last_move = game.last_move}));
  const auto ending = chess::EndingOf(game.boards);
  const std::string_view side = board.side_to_move() == chess::Color::kWhite ? "White" : "Black";
  std::string state = fmt::format("{} to move", side);
  if (ending != chess::Ending::kNone) {
    state = std::string(NameOf(ending));
    if (ending == chess::Ending::kCheckmate) state = fmt::format("{} is checkmated", side);
  } else if (board.InCheck()) {
    state += ", in check";
  }
  const auto passed = board.en_passant();
  fmt::print("  {}\n", state);
  fmt::print("  castling    {}\n", CastlingLine(board));
  fmt::print("  en passant  {}\n", passed ? passed->Name() : "none");
  fmt::print("  clock       {} half-moves, move {}\n", board.halfmove_clock(),
             board.fullmove_number());
  fmt::print("  fen         {}\n", ToFen(board));
  fmt::print("  key         {:016x}\n", board.key());
  const auto moves = SortedSan(board);
  fmt::print("  {} legal moves\n", moves.size());
  PrintMoves(moves);
  return 0;
}

}  // namespace

Command ChessShow() {
  return MakeCommand<ShowOptions>(
      {.name = "chess show",
       .group = "Chess",
       .summary = "show a position: board, state and legal moves",
       .details = "Prints the board, castling rights, en passant square, counters, FEN, hash key "
                  "and legal\n"
                  "moves. With --moves it also sees threefold repetition and marks the last move.",
       .example = "kibitz chess show --fen \"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/"
                  "R3K2R w KQkq - 0 1\""},
      Run);
}

}  // namespace kibitz::cli
