#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/perft.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using Json = nlohmann::ordered_json;

struct PerftOptions {
  FenInput position;
  int depth = 5;
  bool divide = false;
  int threads = 0;
};

Fields FieldsOf(PerftOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.position));
  fields.Add("depth", options.depth, "plies to count", {.min = 0, .max = 30});
  fields.Add("divide", options.divide, "also count the leaves below each root move");
  fields.Add("threads", options.threads, "threads; 0: all cores", {.min = 0, .max = 1024});
  return fields;
}

struct Counted {
  uint64_t nodes = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, uint64_t>> divide;  // Sorted by move text.
};

Counted Count(const Board& board, const PerftOptions& options) {
  Counted counted;
  const auto start = std::chrono::steady_clock::now();
  if (options.depth == 0) {
    counted.nodes = 1;
    return counted;
  }
  Progress progress("subtrees", 0);
  const auto moves =
      PerftDivide(board, options.depth,
                  {.threads = options.threads > 0 ? options.threads : HardwareThreads(),
                   .on_part = [&](size_t, size_t all) {
                     ThrowIfInterrupted();
                     progress.SetTotal(all);
                     progress.Add(1);
                   }});
  for (const auto& [move, nodes] : moves) {
    counted.nodes += nodes;
    counted.divide.emplace_back(ToText(board, move), nodes);
  }
  std::sort(counted.divide.begin(), counted.divide.end());
  counted.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return counted;
}

Json Answer(const Board& board, const PerftOptions& options) {
  const Counted counted = Count(board, options);
  Json answer = {{"fen", ToFen(board)},
                 {"depth", options.depth},
                 {"nodes", counted.nodes},
                 {"seconds", counted.seconds}};
  if (options.divide) {
    answer["divide"] = Json::object();
    for (const auto& [move, nodes] : counted.divide) answer["divide"][move] = nodes;
  }
  return answer;
}

int Run(const PerftOptions& options, const Context& context) {
  if (!options.position.fens.empty()) {
    return AnswerEach(options.position, [&](const Board& board) { return Answer(board, options); });
  }
  const Board board = BoardOf(options.position);
  if (context.json) {
    PrintJson(Answer(board, options));
    return 0;
  }
  const Counted counted = Count(board, options);
  if (options.divide) {
    for (const auto& [move, nodes] : counted.divide) fmt::print("{}: {}\n", move, nodes);
    fmt::print("\n");
  }
  fmt::print("{} nodes at depth {} in {:.2f} s ({}/s)\n", counted.nodes, options.depth,
             counted.seconds,
             HumanCount(static_cast<double>(counted.nodes) / std::max(counted.seconds, 1e-9)));
  return 0;
}

}  // namespace

Command ChessPerft() {
  return MakeCommand<PerftOptions>(
      {.name = "chess perft",
       .group = "Chess",
       .summary = "count the leaf nodes of the game tree at a depth",
       .details =
           "The standard test of move generators: from the starting position depth 5 has 4865609\n"
           "leaves, depth 6 has 119060324.",
       .example = "kibitz chess perft --depth 5 --divide"},
      Run);
}

}  // namespace kibitz::cli
