#include <string>

#include "arena/puzzles.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"
#include "cli/record_run.h"

namespace kibitz::cli {
namespace {

struct ArenaPuzzlesOptions {
  std::vector<std::string> files;
  std::string versus;
  arena::PuzzleOptions puzzles;
  arena::AskOptions ask;
  arena::RunOptions run;
};

Fields FieldsOf(ArenaPuzzlesOptions& options) {
  Fields fields;
  fields.Add("files", options.files, "puzzles: the Lichess CSV, or columns FEN, Moves, Rating",
             {.required = true, .positional = true, .metavar = "FILE.csv"});
  fields.AddAll(arena::FieldsOf(options.ask));
  fields.Add("versus", options.versus, "a second player on the same puzzles, compared one by one",
             {.metavar = "PLAYER"});
  fields.AddAll(arena::FieldsOf(options.puzzles));
  fields.AddAll(arena::FieldsOf(options.run));
  return fields;
}

arena::PuzzleResult Measure(const std::vector<arena::Puzzle>& puzzles, arena::Asker& asker,
                            const ArenaPuzzlesOptions& options, const arena::RunOptions& run) {
  arena::PuzzleOptions chosen = options.puzzles;
  const nlohmann::ordered_json settings = {{"command", "arena puzzles"},
                                           {"file", DescribeInputs(options.files)},
                                           {"options", arena::FieldsOf(chosen).ToTree()},
                                           {"ask", asker.Describe()}};
  Progress progress("puzzles", puzzles.size());
  arena::PuzzleResult result = arena::RunPuzzles(puzzles, asker, run, settings, &progress);
  progress.Finish();
  return result;
}

int MeasureAll(const ArenaPuzzlesOptions& options, const Context& context) {
  arena::AskOptions ask = options.ask;
  ask.seed = options.run.seed;
  arena::Asker asker(ask, options.run.threads());
  std::optional<arena::Asker> other;
  if (!options.versus.empty() && options.run.slice.alone()) {
    throw Error::Usage("--versus and --shards exclude each other; start ranks with mpirun or srun");
  }
  if (!options.versus.empty()) {
    ask.player = options.versus;
    other.emplace(ask, options.run.threads());
  }
  SkipCounter skipped;
  const auto puzzles = arena::LoadPuzzles(options.files, options.puzzles, skipped);
  arena::PuzzleResult result = Measure(puzzles, asker, options, options.run);
  result.player = options.ask.player;
  result.skipped = skipped;
  std::string text = result.Text();
  nlohmann::ordered_json json = result.ToJson();
  arena::Page page = result.ToPage();
  if (other) {
    arena::RunOptions run = options.run;
    if (!run.out.empty()) run.out += "/versus";
    arena::PuzzleResult second = Measure(puzzles, *other, options, run);
    second.player = options.versus;
    const arena::PuzzleComparison comparison(result, second);
    json["versus"] = second.ToJson();
    json["difference"] = comparison.ToJson();
    text += second.Text() + comparison.Text();
    page.Verbatim(second.Text() + comparison.Text());
  }
  arena::WriteReports(options.run, text, json, page);
  return PrintReport(options.run, text, json, context);
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
           "beside. The rating is the likeliest one under the logistic curve. --versus compares "
           "two\n"
           "players puzzle by puzzle, which tells them apart far sooner than two runs do.\n\n" +
           PlayersDetails(),
       .example = "kibitz arena puzzles examples/arena/puzzles.csv --player negamax?depth=3"},
      RunRanked<ArenaPuzzlesOptions, MeasureAll>);
}

}  // namespace kibitz::cli
