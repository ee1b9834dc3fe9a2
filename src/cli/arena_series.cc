#include <string>

#include "arena/series.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"

namespace kibitz::cli {
namespace {

struct ArenaSeriesOptions {
  std::vector<std::string> players;
  arena::SeriesOptions series;
  std::string start_fen;
  std::optional<double> white_temp;
  std::optional<double> black_temp;
  std::string save_trace;
  double min_arrow_probability = 0.2;
  GameInput input;
};

Fields FieldsOf(ArenaSeriesOptions& options) {
  Fields fields;
  fields.Add("players", options.players, "two players",
             {.required = true, .positional = true, .metavar = "PLAYER"});
  fields.Add("rounds", options.series.rounds, "how often each opening is played twice",
             {.min = 1, .max = 1e6});
  fields.Add("max_openings", options.series.openings, "the first so many; 0: all", {.min = 0});
  fields.Add("start_fen", options.start_fen, "this position instead of --openings",
             {.metavar = "FEN"});
  fields.Add("white_temp", options.white_temp, "temperature of whoever has White; else its own",
             {.min = 0, .max = 10});
  fields.Add("black_temp", options.black_temp, "temperature of whoever has Black; else its own",
             {.min = 0, .max = 10});
  fields.Add("save_trace", options.save_trace,
             "write each move with the probabilities of all, one JSON object a line",
             {.metavar = "FILE.jsonl"});
  fields.Add("min_arrow_probability", options.min_arrow_probability,
             "moves of the trace that get an arrow", {.min = 0, .max = 1});
  fields.AddAll(FieldsOf(options.input));
  return fields;
}

int Measure(const ArenaSeriesOptions& options, const Context& context) {
  if (options.players.size() != 2) {
    throw Error::Usage("found {} players, expected two", options.players.size());
  }
  arena::GameSetup setup = SetupOf("series", options.players, options.input);
  for (arena::Contender& contender : setup.contenders) {
    contender.temperature = {options.white_temp, options.black_temp};
  }
  setup.openings.fen = options.start_fen;
  setup.rules.trace = !options.save_trace.empty();
  setup.further = {{"rounds", options.series.rounds}, {"max_openings", options.series.openings}};
  arena::GameRun run(std::move(setup));
  Progress progress("games", 0);
  const arena::SeriesResult result = arena::RunSeries(run, options.series, &progress);
  progress.Finish();
  if (!options.save_trace.empty() && options.input.run.reports()) {
    arena::WriteTrace(options.save_trace, result, run, options.min_arrow_probability);
  }
  run.WriteReport(result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.input.run, result.Text(), result.ToJson(), context);
}

}  // namespace

Command ArenaSeries() {
  return MakeCommand<ArenaSeriesOptions>(
      {.name = "arena series",
       .group = "Arena",
       .summary = "every opening twice with colours swapped: results by colour and opening",
       .details = PlayersDetails(),
       .example = "kibitz arena series policy-small negamax?depth=2 --openings named "
                  "--max-openings 10"},
      RunRanked<ArenaSeriesOptions, Measure>);
}

}  // namespace kibitz::cli
