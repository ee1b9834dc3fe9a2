#include "game.h"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <utility>

#include "base/error.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"

namespace kibitz::python {
namespace {

namespace py = pybind11;
using chess::Board;
using chess::Color;
using chess::Move;

Board BoardOfFen(const std::string& fen, bool chess960) {
  const Result<Board> board = chess::ParseFen(
      fen, {.chess960 = chess960, .drop_wrong_castling = true, .epd_operations = true});
  if (!board) throw Error::Usage("{}: {}", fen, board.reason());
  return *board;
}

std::string TextOf(py::handle move) {
  return py::cast<std::string>(py::hasattr(move, "uci") ? move.attr("uci")() : py::str(move));
}

// A board of python-chess, or of anything that looks like it.
Game ForeignGame(py::handle position) {
  if (!py::hasattr(position, "fen")) {
    throw Error::Usage("{}: expected a FEN, a Board, or an object with fen()",
                       py::cast<std::string>(py::repr(position)));
  }
  const bool chess960 = py::cast<bool>(py::getattr(position, "chess960", py::bool_(false)));
  const bool whole = py::hasattr(position, "root") && py::hasattr(position, "move_stack");
  const py::object root =
      whole ? position.attr("root")() : py::reinterpret_borrow<py::object>(position);
  Game game(BoardOfFen(py::cast<std::string>(root.attr("fen")()), chess960));
  if (!whole) return game;
  for (const py::handle move : position.attr("move_stack")) {
    game.Push(MoveOf(game.board(), TextOf(move)));
  }
  return game;
}

std::vector<std::string> LegalMoveTexts(const Game& game) {
  std::vector<std::string> texts;
  for (const Move move : chess::LegalMoves(game.board())) {
    texts.push_back(ToText(game.board(), move));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

std::vector<std::string> MoveStack(const Game& game) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < game.moves().size(); ++i) {
    texts.push_back(ToText(game.boards()[i], game.moves()[i]));
  }
  return texts;
}

std::string ResultOf(const Game& game) {
  const chess::Ending ending = chess::EndingOf(game.boards());
  if (ending == chess::Ending::kNone) return "*";
  if (ending != chess::Ending::kCheckmate) return "1/2-1/2";
  return game.board().side_to_move() == Color::kWhite ? "0-1" : "1-0";
}

}  // namespace

Game::Game(const oracles::GameSoFar& game) : boards_{game.start} {
  for (const Move move : game.moves) Push(move);
}

void Game::Push(Move move) {
  boards_.push_back(boards_.back().After(move));
  moves_.push_back(move);
}

Move Game::Pop() {
  const Move move = moves_.back();
  moves_.pop_back();
  boards_.pop_back();
  return move;
}

Move MoveOf(const Board& board, const std::string& text) {
  if (const Result<Move> move = chess::ParseMove(board, text)) return *move;
  const Result<Move> move = chess::ParseSan(board, text);
  if (!move) throw Error::Usage("{}", move.reason());
  return *move;
}

Game GameOf(py::handle position, py::handle moves) {
  Game game = py::isinstance<Game>(position) ? py::cast<Game>(position)
              : py::isinstance<py::str>(position)
                  ? Game(BoardOfFen(py::cast<std::string>(position), false))
              : position.is_none() ? Game()
                                   : ForeignGame(position);
  if (moves && !moves.is_none()) {
    for (const py::handle move : moves) game.Push(MoveOf(game.board(), TextOf(move)));
  }
  return game;
}

void AddBoard(py::module_& module) {
  py::class_<Game>(module, "Board", "A chess position with the moves that led to it.")
      .def(py::init([](py::handle position, bool chess960) {
             if (py::isinstance<py::str>(position)) {
               return Game(BoardOfFen(py::cast<std::string>(position), chess960));
             }
             return GameOf(position, py::none());
           }),
           py::arg("position") = py::none(), py::arg("chess960") = false,
           "A position: a FEN, another Board, a board of python-chess; none for the usual start.")
      .def(
          "fen", [](const Game& game) { return ToFen(game.board()); }, "The position as FEN.")
      .def(
          "start_fen", [](const Game& game) { return ToFen(game.start()); },
          "The position before the first move.")
      .def(
          "push",
          [](Game& game, py::handle move) { game.Push(MoveOf(game.board(), TextOf(move))); },
          py::arg("move"), "Makes a legal move, in UCI or SAN.")
      .def(
          "pop",
          [](Game& game) {
            if (game.moves().empty()) throw py::index_error("no move to take back");
            const Move move = game.Pop();
            return ToText(game.board(), move);
          },
          "Takes the last move back and returns it.")
      .def(
          "copy", [](const Game& game) { return game; }, "A copy with its moves.")
      .def(
          "san",
          [](const Game& game, py::handle move) {
            return chess::ToSan(game.board(), MoveOf(game.board(), TextOf(move)));
          },
          py::arg("move"), "A legal move in SAN.")
      .def_property_readonly("legal_moves", LegalMoveTexts, "The legal moves in UCI, sorted.")
      .def_property_readonly("move_stack", MoveStack, "The moves so far, in UCI.")
      .def_property_readonly(
          "turn", [](const Game& game) { return game.board().side_to_move() == Color::kWhite; },
          "True when White is to move.")
      .def_property_readonly(
          "is_check", [](const Game& game) { return game.board().InCheck(); },
          "Whether the side to move is in check.")
      .def_property_readonly(
          "ending",
          [](const Game& game) { return std::string(NameOf(chess::EndingOf(game.boards()))); },
          "How the game ended: 'checkmate', 'stalemate', ...; '' while it goes on.")
      .def_property_readonly("result", ResultOf, "'1-0', '0-1', '1/2-1/2' or '*'.")
      .def("__str__", [](const Game& game) { return chess::Diagram(game.board()); })
      .def("__repr__", [](const Game& game) { return "Board('" + ToFen(game.board()) + "')"; })
      .def("__eq__", [](const Game& a, const Game& b) { return a.board() == b.board(); })
      .def("__hash__", [](const Game& game) { return game.board().key(); });
}

}  // namespace kibitz::python
