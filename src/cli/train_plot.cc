#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/curve_plot.h"
#include "cli/json_output.h"

namespace kibitz::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct TrainPlotOptions {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> metrics;
  double smooth = 0.8;
};

Fields FieldsOf(TrainPlotOptions& options) {
  Fields fields;
  fields.Add("runs", options.runs, "folders of runs, or their metrics.jsonl",
             {.required = true, .positional = true, .metavar = "RUN"});
  fields.Add("out", options.out, "the picture; default: curves.svg beside the first run's metrics",
             {.metavar = "FILE"});
  fields.Add("metrics", options.metrics,
             "panels to draw, such as total_loss,move_acc; default: loss, accuracies, gradient "
             "norm and learning rate, where logged",
             {.metavar = "NAME,NAME,..."});
  fields.Add("smooth", options.smooth,
             "weight of the moving average over training curves, as in TensorBoard; 0: raw",
             {.min = 0, .max = 0.999});
  return fields;
}

fs::path LogOf(const std::string& run) {
  if (!fs::exists(run)) {
    throw Error("{}: no such run; give the folder that 'kibitz ... train' wrote", run);
  }
  if (!fs::is_directory(run)) return run;
  fs::path log = fs::path(run) / "metrics.jsonl";
  if (!fs::exists(log)) {
    throw Error("{}: the folder has no metrics.jsonl; expected the folder of a training run", run);
  }
  return log;
}

std::vector<RunCurves> ReadRuns(const std::vector<std::string>& runs) {
  std::vector<RunCurves> read;
  for (const std::string& run : runs) {
    const fs::path log = LogOf(run);
    std::string name = fs::absolute(log).lexically_normal().parent_path().filename();
    for (const RunCurves& other : read) {
      if (other.name == name) name = run;  // Two runs of one name: the path tells them apart.
    }
    read.push_back({.name = std::move(name), .curves = ReadCurves(log)});
  }
  return read;
}

Json ToJson(const RunCurves& run) {
  Json object = {{"run", run.name}, {"curves", run.curves.size()}};
  const auto best = BestStep(run.curves);
  object["best_step"] = best ? Json(best->first) : Json();
  object["best_loss"] = best ? Json(best->second) : Json();
  return object;
}

int Run(const TrainPlotOptions& options, const Context& context) {
  const std::vector<RunCurves> runs = ReadRuns(options.runs);
  const std::string out = options.out.empty()
                              ? (LogOf(options.runs[0]).parent_path() / "curves.svg").string()
                              : options.out;
  std::vector<std::string> metrics;
  for (const std::string& names : options.metrics) {
    for (std::string_view name : Split(names, ',')) metrics.emplace_back(Trim(name));
  }
  WriteCurves(out, runs,
              {.metrics = std::move(metrics),
               .title = runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size()),
               .smooth = options.smooth});
  if (context.json) {
    Json object = {{"out", out}, {"runs", Json::array()}};
    for (const RunCurves& run : runs) object["runs"].push_back(ToJson(run));
    PrintJson(object);
    return 0;
  }
  for (const RunCurves& run : runs) {
    if (const auto best = BestStep(run.curves)) {
      fmt::print("{}: best step {:.0f}, validation loss {:.4g}\n", run.name, best->first,
                 best->second);
    }
  }
  fmt::print("{} written\n", out);
  return 0;
}

}  // namespace

Command TrainPlot() {
  return MakeCommand<TrainPlotOptions>(
      {.name = "train plot",
       .group = "Training",
       .summary = "draw the curves of training runs as an SVG picture",
       .details =
           "Reads metrics.jsonl of each run, also while it trains. Several runs share the panels,\n"
           "a colour each. Training curves are smoothed, with the raw values faint behind them.\n"
           "A ring marks the step with the lowest validation loss: the weights in best.pt.",
       .example = "kibitz train plot checkpoints/a checkpoints/b --out curves.svg"},
      Run);
}

}  // namespace kibitz::cli
