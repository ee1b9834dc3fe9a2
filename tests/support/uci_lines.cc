#include "tests/support/uci_lines.h"

#include <algorithm>

#include "games/chess/move_text.h"
#include "games/chess/movegen.h"

namespace kibitz::testing {
namespace {

using chess::Board;
using chess::Move;

const std::vector<std::string> kCommands = {"uci",       "isready",    "ucinewgame", "stop",
                                            "ponderhit", "go nodes 1", "d",          "debug on",
                                            "debug off", "register",   "go ponder",  "help"};
const std::vector<std::string> kWords = {"go",
                                         "position",
                                         "fen",
                                         "startpos",
                                         "moves",
                                         "e2e4",
                                         "d2d4",
                                         "searchmoves",
                                         "infinite",
                                         "depth",
                                         "1",
                                         "-1",
                                         "0",
                                         "nodes",
                                         "movetime",
                                         "wtime",
                                         "btime",
                                         "winc",
                                         "value",
                                         "name",
                                         "x",
                                         "ponder",
                                         "999999999999999999999"};
const std::vector<std::string> kFens = {
    "8/8/8/8/8/8/8/8 w - - 0 1",      "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "4k3/P7/8/8/8/8/p7/4K3 w - -",    "rnbqkbnr/pppp1ppp/8/8/3PpP2/8/PPP1P1PP/RNBQKBNR b KQkq d3"};
const std::vector<std::string> kNames = {"Mode",        "MultiPV",      "MaxDepth", "MaxVariations",
                                         "Hash",        "Bogus",        "",         "Ponder",
                                         "UCI_ShowWDL", "UCI_Chess960", "Seed",     "value",
                                         "Temperature", "Move Overhead"};
const std::vector<std::string> kValues = {"think", "policy", "1", "3", "true",
                                          "false", "0.7",    "",  "-5"};

constexpr size_t kMegabyte = 1 << 20;

std::string Repeated(std::string_view text) {
  std::string line;
  while (line.size() < kMegabyte) line += text;
  return line;
}

}  // namespace

std::string MadUciLines::Next() {
  std::string line = Line();
  std::replace(line.begin(), line.end(), '\n', '\0');
  return line;
}

std::string MadUciLines::Line() {
  switch (rng_.Below(12)) {
    case 0:
      return Bytes(rng_.Below(40));
    case 1:
      return rng_.Below(1000) == 0 ? Bytes(kMegabyte) : Words(rng_.Below(10));
    case 2:
      return "position " + (rng_.Below(1000) == 0
                                ? "startpos moves " + Repeated("g1f3 g8f6 f3g1 f6g8 ")
                                : Words(rng_.Below(6)));
    case 3:
      return "position startpos moves " + Game();
    case 4:
      return "position fen " + Pick(kFens) + (rng_.Below(2) == 0 ? " moves " + Words(2) : "");
    case 5:
    case 6:
      return "go " + Words(rng_.Below(5));
    case 7:
      return "go infinite";
    case 8:
      return "stop";
    case 9:
      return "setoption name " + Pick(kNames) + " value " + Pick(kValues);
    case 10:
      return Damaged("go wtime 1000 btime 1000 searchmoves e2e4 depth 2");
    default:
      return Pick(kCommands);
  }
}

std::string MadUciLines::Words(uint64_t count) {
  std::string line;
  for (uint64_t i = 0; i < count; ++i) line += Pick(kWords) + " ";
  return line;
}

std::string MadUciLines::Bytes(uint64_t count) {
  std::string line;
  for (uint64_t i = 0; i < count; ++i) line += static_cast<char>(rng_.Below(256));
  return line;
}

std::string MadUciLines::Damaged(std::string line) {
  line[rng_.Below(line.size())] = static_cast<char>(rng_.Below(256));
  return line;
}

std::string MadUciLines::Game() {
  Board board;
  std::string line;
  for (uint64_t left = rng_.Below(30); left > 0 && chess::HasLegalMove(board); --left) {
    const chess::MoveList moves = chess::LegalMoves(board);
    const Move move = moves[rng_.Below(moves.size())];
    line += ToText(board, move) + " ";
    board = board.After(move);
  }
  return line;
}

}  // namespace kibitz::testing
