#include "serve/chess_json.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"

namespace kibitz::serve {
namespace {

using chess::Board;
using chess::Move;
using chess::PgnGame;

constexpr size_t kMaxMoves = 1200;

Board StartIn(const Json& body) {
  const auto start = body.find("start");
  if (start == body.end() || start->is_null()) return Board();
  if (!start->is_string()) throw Error::Usage("start: expected a FEN");
  const auto board = chess::ParseFen(start->get<std::string>(), {.drop_wrong_castling = true});
  if (!board) throw Error::Usage("start: {}", board.reason());
  return *board;
}

PgnGame GameFromText(const std::string& text) {
  PgnGame game;
  const std::string_view trimmed = Trim(text);
  const auto board = chess::ParseFen(trimmed, {.drop_wrong_castling = true});
  if (board) {
    game.start = *board;
    return game;
  }
  // Rows between slashes are a FEN; say what is wrong with it rather than with its first move.
  const std::string_view first = trimmed.substr(0, trimmed.find(' '));
  if (Split(first, '/').size() == 8) throw Error::Usage("FEN: {}", board.reason());
  chess::PgnReader reader(chess::TextSource(text), {.comments = false});
  switch (reader.Next(game)) {
    case chess::PgnRead::kGame:
      return game;
    case chess::PgnRead::kBroken:
      throw Error::Usage("{}; expected a FEN, a PGN or a list of moves", reader.problem().reason);
    default:
      throw Error::Usage("expected a FEN, a PGN or a list of moves");
  }
}

std::vector<Board> BoardsOf(const PgnGame& game) {
  std::vector<Board> boards = {game.start};
  for (const Move move : game.moves) boards.push_back(boards.back().After(move));
  return boards;
}

Json LegalJson(const Board& board) {
  Json list = Json::array();
  for (const Move move : chess::LegalMoves(board)) list.push_back(MoveJson(board, move));
  return list;
}

std::string_view ResultOf(chess::Ending ending, chess::Color to_move) {
  if (ending == chess::Ending::kNone) return "*";
  if (ending != chess::Ending::kCheckmate) return "1/2-1/2";
  return to_move == chess::Color::kWhite ? "0-1" : "1-0";
}

}  // namespace

PgnGame GameIn(const Json& body) {
  const auto text = body.find("text");
  if (text != body.end() && text->is_string()) return GameFromText(text->get<std::string>());
  PgnGame game;
  game.start = StartIn(body);
  const auto moves = body.find("moves");
  if (moves == body.end() || moves->is_null()) return game;
  if (!moves->is_array() || moves->size() > kMaxMoves) {
    throw Error::Usage("moves: expected a list of at most {} moves", kMaxMoves);
  }
  Board board = game.start;
  for (const Json& each : *moves) {
    const std::string move_text = each.is_string() ? each.get<std::string>() : "";
    auto move = chess::ParseMove(board, move_text);
    if (!move) move = chess::ParseSan(board, move_text);
    if (!move) throw Error::Usage("move {}: {}", game.moves.size() + 1, move.reason());
    game.moves.push_back(*move);
    board = board.After(*move);
  }
  return game;
}

oracles::GameSoFar SoFar(const PgnGame& game) { return {.start = game.start, .moves = game.moves}; }

Json MoveJson(const Board& board, Move move) {
  return {{"uci", chess::ToText(board, move)}, {"san", chess::ToSan(board, move)}};
}

Json GameJson(const PgnGame& game) {
  const std::vector<Board> boards = BoardsOf(game);
  const Board& board = boards.back();
  Json moves = Json::array();
  for (size_t i = 0; i < game.moves.size(); ++i) {
    Json move = MoveJson(boards[i], game.moves[i]);
    move["fen"] = chess::ToFen(boards[i + 1]);
    move["check"] = boards[i + 1].InCheck();
    moves.push_back(std::move(move));
  }
  const chess::Ending ending = chess::EndingOf(boards);
  const bool white = board.side_to_move() == chess::Color::kWhite;
  return {{"start", chess::ToFen(game.start)},
          {"fen", chess::ToFen(board)},
          {"turn", white ? "white" : "black"},
          {"moves", std::move(moves)},
          {"legal", LegalJson(board)},
          {"check", board.InCheck() ? Json(board.KingOf(board.side_to_move()).Name()) : Json()},
          {"ending", chess::NameOf(ending)},
          {"result", ResultOf(ending, board.side_to_move())}};
}

Json WdlJson(const oracles::Wdl& wdl, chess::Color mover) {
  const oracles::Wdl white = mover == chess::Color::kWhite ? wdl : wdl.Reversed();
  return {{"win", white.win}, {"draw", white.draw}, {"loss", white.loss}};
}

std::string Letters(const Board& board) {
  std::string letters(64, '.');
  for (int i = 0; i < 64; ++i)
    letters[static_cast<size_t>(i)] = board.PieceAt(chess::Square(i)).Letter();
  return letters;
}

}  // namespace kibitz::serve
