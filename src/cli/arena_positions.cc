#include <string>

#include "arena/labels.h"
#include "arena/suite.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"
#include "cli/record_run.h"

namespace kibitz::cli {
namespace {

struct ArenaPositionsOptions {
  std::vector<std::string> files;
  arena::LabelInput labels;
  arena::AskOptions ask;
  arena::RunOptions run;
};

Fields FieldsOf(ArenaPositionsOptions& options) {
  Fields fields;
  fields.Add("files", options.files, "EPD suites with bm, am or points",
             {.positional = true, .metavar = "FILE.epd"});
  fields.AddAll(arena::FieldsOf(options.ask));
  fields.AddAll(arena::FieldsOf(options.labels));
  fields.AddAll(arena::FieldsOf(options.run));
  return fields;
}

template <typename Measured>
int Report(Measured& result, const ArenaPositionsOptions& options, const Context& context) {
  result.player = options.ask.player;
  arena::WriteReports(options.run, result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.run, result.Text(), result.ToJson(), context);
}

int Measure(const ArenaPositionsOptions& options, const Context& context) {
  if (options.files.empty() == options.labels.data.empty()) {
    throw Error::Usage("give either EPD files, or --data with a policy data set");
  }
  arena::AskOptions ask = options.ask;
  ask.seed = options.run.seed;
  arena::Asker asker(ask, options.run.threads());
  nlohmann::ordered_json settings = {{"command", "arena positions"}, {"ask", asker.Describe()}};
  if (!options.labels.data.empty()) {
    arena::LabelInput labels = options.labels;
    settings["labels"] = arena::FieldsOf(labels).ToTree();
    Progress progress("positions", 0);
    arena::LabelResult result = arena::RunLabels(labels, asker, options.run, settings, &progress);
    progress.Finish();
    return Report(result, options, context);
  }
  settings["files"] = DescribeInputs(options.files);
  const auto suite = arena::LoadSuite(options.files);
  Progress progress("positions", suite.size());
  arena::SuiteResult result = arena::RunSuite(suite, asker, options.run, settings, &progress);
  progress.Finish();
  return Report(result, options, context);
}

}  // namespace

Command ArenaPositions() {
  return MakeCommand<ArenaPositionsOptions>(
      {.name = "arena positions",
       .group = "Arena",
       .summary = "test positions: best moves, points, or a data set's soft labels",
       .details =
           "EPD suites: bm (moves that solve), am (moves to avoid), and points: c8 beside c9 or "
           "c7,\n"
           "as in the Strategic Test Suite. With --data: top-1 and top-5 accuracy, cross-entropy\n"
           "and calibration against the soft labels of 'kibitz policy precompute'.\n\n" +
           PlayersDetails(),
       .example = "kibitz arena positions examples/arena/suite.epd --player negamax?depth=3"},
      RunRanked<ArenaPositionsOptions, Measure>);
}

}  // namespace kibitz::cli
