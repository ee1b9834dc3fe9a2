#include "oracles/records/rows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::MoveStyle;

constexpr double kScale = 1e6;  // Probabilities are written with six decimals.

double Rounded(double value) { return std::round(value * kScale) / kScale; }

void AddWdl(Json& row, const Wdl& wdl) {
  row["win"] = Rounded(wdl.win);
  row["draw"] = Rounded(wdl.draw);
  row["loss"] = Rounded(wdl.loss);
}

Json PlyRow(const std::string& id, const PlyRecord& record) {
  Json row = {{"game_id", id},
              {"ply", record.ply},
              {"fen", ToFen(record.board)},
              {"played_move", ToText(record.board, record.played, MoveStyle::kModel)},
              {"best_move", ToText(record.board, record.best, MoveStyle::kModel)}};
  if (record.wdl) AddWdl(row, *record.wdl);
  if (record.played_wdl) {
    row["played_q"] = Rounded(record.played_wdl->win - record.played_wdl->loss);
    row["played_d"] = Rounded(record.played_wdl->draw);
  }
  return row;
}

Json VariationItem(const Board& root, const Variation& variation) {
  Json item = {{"root_move", ToText(root, variation.nodes.at(0).move)},
               {"visit_count", variation.visits},
               {"visit_fraction", Rounded(variation.fraction)},
               {"prior", Rounded(variation.prior)},
               {"nodes", Json::array()}};
  Board board = root;
  for (size_t i = 0; i < variation.nodes.size(); ++i) {
    const VariationNode& node = variation.nodes[i];
    board = board.After(node.move);
    Json move;  // Null at the end of the line.
    if (i + 1 < variation.nodes.size()) move = ToText(board, variation.nodes[i + 1].move);
    item["nodes"].push_back(
        {{"fen", ToFen(board)},
         {"move", move},
         {"wdl", {Rounded(node.wdl.win), Rounded(node.wdl.draw), Rounded(node.wdl.loss)}},
         {"visit_count", node.visits}});
  }
  return item;
}

Json PvItem(const Board& position, const Variation& variation) {
  const WhiteScore score = ToWhite(variation.score, position.side_to_move());
  Json item;
  if (score.mate) {
    item["mate"] = score.mate->wins ? score.mate->moves : -score.mate->moves;
  } else {
    item["cp"] = score.centipawns.value_or(0);
  }
  std::string line;
  Board board = position;
  for (const VariationNode& node : variation.nodes) {
    line +=
        fmt::format("{}{}", line.empty() ? "" : " ", ToText(board, node.move, MoveStyle::kUciRook));
    board = board.After(node.move);
  }
  item["line"] = line;
  return item;
}

// Parses a unit again; keeps the first fault.
class UnitCheck {
 public:
  const std::string& fault() const { return fault_; }

  std::optional<Board> ReadBoard(const std::string& fen) {
    const Result<Board> board = chess::ParseFen(fen);
    if (!board) return Fail(fmt::format("{}: {}", fen, board.reason()));
    return *board;
  }
  std::optional<chess::Move> ReadMove(const Board& board, const std::string& text,
                                      MoveStyle style) {
    const Result<chess::Move> move = chess::ParseMove(board, text, style);
    if (!move) return Fail(move.reason());
    if (ToText(board, *move, style) != text) {
      return Fail(fmt::format("move {} in {} is not in the expected notation", text, ToFen(board)));
    }
    return *move;
  }
  void ExpectSame(const Board& found, const Board& expected) {
    if (ToFen(found) != ToFen(expected)) {
      Fail(fmt::format("{} does not follow from the move before it; expected {}", ToFen(found),
                       ToFen(expected)));
    }
  }
  void ExpectWdl(double win, double draw, double loss, const std::string& place) {
    constexpr double kSlack = 1e-5;  // Of rounding.
    const bool chances = win >= 0 && draw >= 0 && loss >= 0;
    if (!chances || std::abs(win + draw + loss - 1) > kSlack) {
      Fail(fmt::format("win, draw and loss {}, {}, {} of {} do not sum to 1", win, draw, loss,
                       place));
    }
  }
  void ExpectWdlOf(const Json& row) {
    if (row.contains("win")) ExpectWdl(row["win"], row["draw"], row["loss"], row["fen"]);
  }
  std::nullopt_t Fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
    return std::nullopt;
  }

 private:
  std::string fault_;
};

void CheckVariation(UnitCheck& check, const Board& root, const Json& item) {
  auto move = check.ReadMove(root, item["root_move"], MoveStyle::kUci);
  if (item["nodes"].empty()) check.Fail("a variation without a position");
  Board before = root;
  for (const Json& node : item["nodes"]) {
    if (!move) {
      check.Fail("a line continues after its end");
      return;
    }
    const auto board = check.ReadBoard(node["fen"]);
    if (!board) return;
    check.ExpectSame(*board, before.After(*move));
    check.ExpectWdl(node["wdl"][0], node["wdl"][1], node["wdl"][2], node["fen"]);
    before = *board;
    move.reset();
    if (node["move"].is_null()) continue;
    move = check.ReadMove(*board, node["move"], MoveStyle::kUci);
    if (!move) return;
  }
  if (move) check.Fail("the last position of a line has a move");
}

void CheckLine(UnitCheck& check, Board board, const std::string& line) {
  size_t begin = 0;
  while (begin <= line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const auto move = check.ReadMove(board, line.substr(begin, end - begin), MoveStyle::kUciRook);
    if (!move) return;
    board = board.After(*move);
    begin = end + 1;
  }
}

Json Sound(Json unit, const std::string& fault) {
  if (!fault.empty()) throw Error("faulty record: {}; found {}", fault, unit.dump());
  return unit;
}

}  // namespace

Json GameUnit(const GameRecord& game) {
  Json unit = {{"result", game.result}, {"rows", Json::array()}};
  std::string id = game.id;
  int expected = game.plies.empty() ? 0 : game.plies.front().ply;
  for (const PlyRecord& ply : game.plies) {
    if (ply.ply != expected) id = fmt::format("{}#{}", game.id, ply.ply);
    unit["rows"].push_back(PlyRow(id, ply));
    expected = ply.ply + 1;
  }
  return Sound(unit, FaultOfGame(unit));
}

Json SearchUnit(const Board& root, const Lesson& lesson) {
  Json variations = Json::array();
  for (const Variation& item : lesson.variations) variations.push_back(VariationItem(root, item));
  Json unit = {{"fen", ToFen(root)},
               {"variations", variations.dump()},
               {"mcts_action", ToText(root, lesson.best)}};
  AddWdl(unit, lesson.wdl);
  return Sound(unit, FaultOfSearch(unit));
}

Json EvalUnit(const Board& position, std::span<const Lesson> sessions) {
  Json unit = {{"fen", ToFen(position, {.counters = false})}, {"evals", Json::array()}};
  for (const Lesson& lesson : sessions) {
    Json eval = {
        {"pvs", Json::array()}, {"knodes", (lesson.nodes + 999) / 1000}, {"depth", lesson.depth}};
    for (const Variation& item : lesson.variations) eval["pvs"].push_back(PvItem(position, item));
    unit["evals"].push_back(std::move(eval));
  }
  return Sound(unit, FaultOfEval(unit));
}

std::string FaultOfGame(const Json& unit) {
  UnitCheck check;
  std::optional<Board> expected;  // After the row before.
  std::string id;
  int last_ply = -1;
  for (const Json& row : unit["rows"]) {
    const auto board = check.ReadBoard(row["fen"]);
    if (!board) break;
    const int ply = row["ply"];
    if (expected && row["game_id"] == id) {
      if (ply != last_ply + 1) check.Fail(fmt::format("ply {} follows ply {}", ply, last_ply));
      check.ExpectSame(*board, *expected);
    }
    const auto played = check.ReadMove(*board, row["played_move"], MoveStyle::kModel);
    check.ReadMove(*board, row["best_move"], MoveStyle::kModel);
    check.ExpectWdlOf(row);
    if (!played) break;
    expected = board->After(*played);
    id = row["game_id"];
    last_ply = ply;
  }
  return check.fault();
}

std::string FaultOfSearch(const Json& unit) {
  UnitCheck check;
  const auto root = check.ReadBoard(unit["fen"]);
  if (!root) return check.fault();
  const auto best = check.ReadMove(*root, unit["mcts_action"], MoveStyle::kUci);
  check.ExpectWdlOf(unit);
  const Json variations = Json::parse(unit["variations"].get<std::string>());
  if (variations.empty()) check.Fail("no variation");
  bool has_best = false;
  for (const Json& item : variations) {
    CheckVariation(check, *root, item);
    has_best = has_best || item["root_move"] == unit["mcts_action"];
  }
  if (best && !has_best) check.Fail("no variation begins with the best move");
  return check.fault();
}

std::string FaultOfEval(const Json& unit) {
  UnitCheck check;
  const auto board = check.ReadBoard(unit["fen"]);
  if (!board) return check.fault();
  if (unit["evals"].empty()) check.Fail("no evaluation");
  for (const Json& eval : unit["evals"]) {
    if (eval["pvs"].empty()) check.Fail("an evaluation without a line");
    for (const Json& pv : eval["pvs"]) {
      if (pv.contains("cp") == pv.contains("mate")) check.Fail("neither cp nor mate, or both");
      CheckLine(check, *board, pv["line"]);
    }
  }
  return check.fault();
}

}  // namespace kibitz::oracles
