#include <string>

#include "arena/puzzles.h"
#include "cli/arena_input.h"
#include "cli/commands.h"
#include "cli/record_run.h"

namespace kibitz::cli {
namespace {

struct ArenaPuzzlesOptions {
  std::string file;
  arena::PuzzleOptions puzzles;
  arena::AskOptions ask;
  arena::RunOptions run;
};

Fields FieldsOf(ArenaPuzzlesOptions& options) {
  Fields fields;
  fields.Add("file", options.file, "puzzles: the Lichess CSV, or columns FEN, Moves, Rating",
             {.required = true, .positional = true, .metavar = "FILE.csv"});
  fields.AddAll(arena::FieldsOf(options.ask));
  fields.AddAll(arena::FieldsOf(options.puzzles));
  fields.AddAll(arena::FieldsOf(options.run));
  return fields;
}

int Run(const ArenaPuzzlesOptions& options, const Context& context) {
  arena::AskOptions ask = options.ask;
  ask.seed = options.run.seed;
  arena::Asker asker(ask, options.run.threads());
  SkipCounter skipped;
  arena::PuzzleOptions chosen = options.puzzles;
  const auto puzzles = arena::LoadPuzzles(options.file, chosen, skipped);
  const nlohmann::ordered_json settings = {{"command", "arena puzzles"},
                                           {"file", DescribeInputs({options.file})},
                                           {"options", arena::FieldsOf(chosen).ToTree()},
                                           {"ask", asker.Describe()}};
  Progress progress("puzzles", puzzles.size());
  arena::PuzzleResult result = arena::RunPuzzles(puzzles, asker, options.run, settings, &progress);
  progress.Finish();
  result.player = options.ask.player;
  result.skipped = skipped;
  arena::WriteReports(options.run, result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(result.Text(), result.ToJson(), context);
}

}  // namespace

Command ArenaPuzzles() {
  return MakeCommand<ArenaPuzzlesOptions>(
      {.name = "arena puzzles",
       .group = "Arena",
       .summary = "puzzles solved by rating and theme, and the rating that is worth",
       .details =
           "A puzzle is solved when every move of its line is found. A mate on the way that the "
           "line\n"
           "does not have counts as solved too, as on Lichess; the figures of the exact line "
           "stand\n"
           "beside. The rating is the likeliest one under the logistic curve.\n\n" +
           PlayersDetails(),
       .example = "kibitz arena puzzles examples/arena/puzzles.csv --player negamax?depth=3"},
      Run);
}

}  // namespace kibitz::cli
