#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>

#include "arena/thinking.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/arena_input.h"
#include "cli/commands.h"
#include "cli/record_run.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::cli {
namespace {

struct ArenaThinkingOptions {
  arena::ThinkingOptions thinking;
  std::string fens;
  int64_t limit = 0;
  arena::JudgeOptions judge;
  arena::RunOptions run;
};

Fields FieldsOf(ArenaThinkingOptions& options) {
  Fields fields;
  fields.Add("model", options.thinking.model, "a decoder", {.required = true, .metavar = "PATH"});
  fields.Add("fens", options.fens,
             "positions, FEN or EPD lines; '-': standard input; default: those of --teacher",
             {.metavar = "FILE"});
  fields.Add("limit", options.limit, "the first so many; 0: all", {.min = 0});
  fields.AddAll(arena::FieldsOf(options.thinking));
  fields.AddAll(arena::FieldsOf(options.judge));
  fields.AddAll(arena::FieldsOf(options.run));
  return fields;
}

std::vector<chess::Board> ReadPositions(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& in = path == "-" ? std::cin : file;
  if (!in.good()) throw Error("{}: cannot be read; expected FEN or EPD lines", path);
  std::vector<chess::Board> boards;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (Trim(line).empty() || Trim(line).starts_with('#')) continue;
    const auto board = chess::ParseFen(line, {.drop_wrong_castling = true, .epd_operations = true});
    if (!board) throw Error("{}:{}: {}", path, number, board.reason());
    if (chess::HasLegalMove(*board)) boards.push_back(*board);
  }
  if (boards.empty()) throw Error("{}: there is no position in it", path);
  return boards;
}

int Measure(const ArenaThinkingOptions& options, const Context& context) {
  if (options.fens.empty() && options.judge.teacher.empty()) {
    throw Error::Usage("give --fens, or --teacher with scores of positions");
  }
  std::unique_ptr<arena::Judging> judge;
  std::vector<chess::Board> positions;
  if (options.judge.teacher.empty()) {
    judge = std::make_unique<arena::EngineJudge>(options.judge, options.run.threads());
  } else {
    auto recorded = std::make_unique<arena::RecordedJudge>(options.judge.teacher);
    positions = recorded->positions();
    judge = std::move(recorded);
  }
  if (!options.fens.empty()) positions = ReadPositions(options.fens);
  if (options.limit > 0 && positions.size() > static_cast<size_t>(options.limit)) {
    positions.resize(static_cast<size_t>(options.limit));
  }
  arena::ThinkingOptions thinking = options.thinking;
  const nlohmann::ordered_json settings = {
      {"command", "arena thinking"},
      {"model", arena::DescribeContenders({arena::Contender{"decoder:" + thinking.model}})},
      {"positions", positions.size()},
      {"fens", options.fens == "-" || options.fens.empty() ? nlohmann::ordered_json(options.fens)
                                                           : DescribeInputs({options.fens})},
      {"options", arena::FieldsOf(thinking).ToTree()},
      {"judge", judge->name()}};
  Progress progress("positions", positions.size());
  const arena::ThinkingResult result =
      arena::RunThinking(positions, thinking, *judge, options.run, settings, &progress);
  progress.Finish();
  arena::WriteReports(options.run, result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.run, result.Text(), result.ToJson(), context);
}

}  // namespace

Command ArenaThinking() {
  return MakeCommand<ArenaThinkingOptions>(
      {.name = "arena thinking",
       .group = "Arena",
       .summary = "does thinking help a decoder, by how much, and are its thoughts well formed",
       .details =
           "The instinct's move against the move after thinking, on the same positions, with "
           "several\n"
           "budgets. A judge scores both: an engine that searches each move by itself at fixed "
           "nodes,\n"
           "or recorded scores. McNemar's exact test tells whether better and worse differ by "
           "chance,\n"
           "a paired bootstrap how many centipawns are gained. Moves of the variations are legal "
           "in\n"
           "that comparison, as in play; the form of thoughts is measured with nothing enforced.",
       .example = "kibitz arena thinking --model tests/golden/decoder/tiny.pt --fens "
                  "examples/arena/suite.epd --judge negamax?depth=2"},
      RunRanked<ArenaThinkingOptions, Measure>);
}

}  // namespace kibitz::cli
