#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "cli/search_input.h"
#include "cli/teacher_input.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"
#include "oracles/records/teacher_evaluator.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using oracles::RootMove;
using oracles::SearchReport;
using oracles::Wdl;
using Json = nlohmann::ordered_json;

struct OracleSearchOptions {
  FenInput position = {.for_decoder = true};
  std::string moves;
  SearchInput search = {.net_required = false};
  int64_t nodes = 800;
  double seconds = 0;
  int show = 10;
  std::string engine;
  std::vector<std::string> engine_option;
  int64_t engine_nodes = 1000;
  int multipv = 8;
};

Fields FieldsOf(OracleSearchOptions& options) {
  Fields fields = FieldsOf(options.position);
  AddMoves(
      fields, options.moves,
      "moves played from the position, in UCI or SAN; lc0 networks also read the boards before");
  fields.Add("nodes", options.nodes, "visits of the root, itself included", {.min = 1, .max = 1e9});
  fields.Add("seconds", options.seconds, "stop after this many seconds; 0: no limit", {.min = 0});
  fields.Add("show", options.show, "moves to list", {.min = 1, .max = 512});
  fields.AddAll(FieldsOf(options.search));
  fields.Add("engine", options.engine, "evaluate with a UCI engine instead of a network",
             {.metavar = "CMD"});
  fields.Add("engine_option", options.engine_option, "UCI option of the engine",
             {.metavar = "NAME=VALUE"});
  fields.Add("engine_nodes", options.engine_nodes, "nodes the engine searches for each position",
             {.min = 1});
  fields.Add("multipv", options.multipv, "moves for which the engine gives priors",
             {.min = 1, .max = 256});
  return fields;
}

Json WdlJson(const Wdl& wdl) { return Json::array({wdl.win, wdl.draw, wdl.loss}); }

// The line as words, in UCI or SAN.
template <typename ToWord>
std::vector<std::string> LineOf(const Board& root, const RootMove& move, ToWord to_word) {
  std::vector<std::string> words;
  Board board = root;
  for (const oracles::LineNode& node : move.line) {
    words.push_back(to_word(board, node.move));
    board = board.After(node.move);
  }
  return words;
}

Json MoveJson(const Board& root, const RootMove& move) {
  Json answer = {{"move", chess::ToText(root, move.move)},
                 {"san", chess::ToSan(root, move.move)},
                 {"visits", move.visits},
                 {"prior", move.prior},
                 {"q", move.q},
                 {"u", move.exploration}};
  answer["wdl"] = move.wdl ? WdlJson(*move.wdl) : Json(nullptr);
  answer["value"] = move.value ? Json(*move.value) : Json(nullptr);
  if (move.mate) answer["mate"] = move.mate->wins ? move.mate->moves : -move.mate->moves;
  answer["pv"] =
      LineOf(root, move, [](const Board& board, chess::Move m) { return chess::ToText(board, m); });
  return answer;
}

Json Answer(const Board& root, const SearchReport& report, int show) {
  Json answer = {{"fen", chess::ToFen(root)}, {"visits", report.visits}};
  answer["move"] =
      report.moves.empty() ? Json(nullptr) : Json(chess::ToText(root, report.moves.front().move));
  if (report.visits > 0) {
    answer["q"] = report.q;
    answer["wdl"] = WdlJson(report.wdl);
    answer["value"] = report.value;
  }
  if (report.mate) answer["mate"] = report.mate->wins ? report.mate->moves : -report.mate->moves;
  Json moves = Json::array();
  const auto count = std::min(report.moves.size(), static_cast<size_t>(show));
  for (size_t i = 0; i < count; ++i) moves.push_back(MoveJson(root, report.moves[i]));
  answer["moves"] = std::move(moves);
  return answer;
}

std::string WdlText(const Wdl& wdl) {
  return fmt::format("{:3.0f} {:3.0f} {:3.0f}", 100 * wdl.win, 100 * wdl.draw, 100 * wdl.loss);
}

std::string MateText(const std::optional<oracles::Mate>& mate) {
  if (!mate) return "";
  return fmt::format(", {} in {}", mate->wins ? "mates" : "is mated", mate->moves);
}

void Print(const Board& root, const SearchReport& report, const OracleSearchOptions& options) {
  if (report.moves.empty()) {
    fmt::print("no legal move in {}\n", chess::ToFen(root));
    return;
  }
  fmt::print("{}: {} win, draw, loss in % for the side to move{}\n",
             chess::ToSan(root, report.moves.front().move), WdlText(report.wdl),
             MateText(report.mate));
  fmt::print("  {:8} {:>8} {:>6} {:>7}   {:^11}  {}\n", "move", "visits", "prior", "Q", "W   D   L",
             "line");
  const auto count = std::min(report.moves.size(), static_cast<size_t>(options.show));
  for (size_t i = 0; i < count; ++i) {
    const RootMove& move = report.moves[i];
    const auto words = LineOf(
        root, move, [](const Board& board, chess::Move m) { return chess::ToSan(board, m); });
    fmt::print("  {:8} {:>8} {:>5.1f}% {:>7.4f}   {:11}  {}{}\n", chess::ToSan(root, move.move),
               move.visits, 100 * move.prior, move.q, move.wdl ? WdlText(*move.wdl) : "",
               fmt::join(words, " "), MateText(move.mate));
  }
  if (count < report.moves.size()) {
    fmt::print("  {} more moves; --show N lists more\n", report.moves.size() - count);
  }
}

oracles::GameSoFar GameOf(const OracleSearchOptions& options) {
  oracles::GameSoFar game{.start = BoardOf(options.position)};
  game.moves = MovesOf(game.start, options.moves);
  return game;
}

std::shared_ptr<oracles::Evaluator> OpenEvaluator(const OracleSearchOptions& options) {
  if (options.engine.empty() == options.search.network.path.empty()) {
    throw Error::Usage("give either --net FILE or --engine CMD to evaluate positions");
  }
  if (options.engine.empty()) return LoadEvaluator(options.search);
  TeacherInput input{.engine = options.engine,
                     .engine_option = options.engine_option,
                     .session = {.nodes = options.engine_nodes, .multipv = options.multipv},
                     .engines = options.search.network.threads};
  const int batch = WorkersOf(input);
  return std::make_unique<oracles::TeacherEvaluator>(OpenTeacher(input), batch);
}

int SearchFens(oracles::Evaluator& evaluator, const OracleSearchOptions& options,
               const oracles::TreeOptions& tree, const StopOnInterrupt& interrupt) {
  return AnswerInBatches(options.position, 64, [&](std::span<const Board> boards, size_t) {
    std::vector<oracles::GameSoFar> games;
    for (const Board& board : boards) games.push_back({.start = board});
    const auto reports =
        SearchMany(evaluator, games, tree, {.visits = options.nodes, .stop = interrupt.token()});
    ThrowIfInterrupted();
    std::vector<Json> answers;
    for (size_t i = 0; i < boards.size(); ++i) {
      answers.push_back(Answer(boards[i], reports[i], options.show));
    }
    return answers;
  });
}

int Run(const OracleSearchOptions& options, const Context& context) {
  const bool many = !options.position.fens.empty();
  if (many && !options.moves.empty()) {
    throw Error::Usage("--moves needs one position, not --fens");
  }
  if (many && options.seconds > 0) {
    throw Error::Usage("--seconds needs one position; with --fens give --nodes");
  }
  const oracles::GameSoFar game = many ? oracles::GameSoFar() : GameOf(options);
  const auto evaluator = OpenEvaluator(options);
  const oracles::TreeOptions tree_options =
      TreeOptionsOf(options.search, options.nodes, *evaluator);
  const StopOnInterrupt interrupt;
  if (many) return SearchFens(*evaluator, options, tree_options, interrupt);

  oracles::SearchTree tree(game, tree_options);
  const auto start = std::chrono::steady_clock::now();
  Search(*evaluator, tree,
         {.visits = options.nodes, .seconds = options.seconds, .stop = interrupt.token()});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const SearchReport report = tree.Report();
  if (context.json) {
    Json answer = Answer(game.Current(), report, options.show);
    answer["net"] = evaluator->name();
    answer["seconds"] = seconds;
    PrintJson(answer);
  } else {
    Print(game.Current(), report, options);
    fmt::print("  {} visits in {:.2f} s, {:.0f} visits/s; {}\n", report.visits, seconds,
               static_cast<double>(report.visits) / seconds, evaluator->name());
  }
  ThrowIfInterrupted();  // After the report of what was found so far.
  return 0;
}

}  // namespace

Command OracleSearch() {
  return MakeCommand<OracleSearchOptions>(
      {.name = "oracle search",
       .group = "Teachers",
       .summary = "search a position with MCTS: visits, priors, values and lines of each move",
       .details = "Monte Carlo tree search as in lc0. An lc0 network (.pb.gz), a decoder "
                  "checkpoint or a UCI\n"
                  "engine evaluates the leaves. All values are for the side to move at the root. "
                  "The result\n"
                  "does not depend on the number of threads. --fens searches many positions at a "
                  "time and\n"
                  "evaluates their leaves in one batch.",
       .example =
           "kibitz oracle search --net tests/golden/decoder/tiny.pt --nodes 100 --moves \"e4 c5\""},
      Run);
}

}  // namespace kibitz::cli
