#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/curve_plot.h"
#include "cli/json_output.h"

namespace kibitz::cli {
namespace {

struct PlotOptions {
  std::string run;
  std::string out;
  std::vector<std::string> metrics;
};

Fields FieldsOf(PlotOptions& options) {
  Fields fields;
  fields.Add("run", options.run, "a run's folder, or its metrics.jsonl",
             {.required = true, .positional = true, .metavar = "RUN"});
  fields.Add("out", options.out, "the picture; default: curves.svg in the run's folder",
             {.metavar = "FILE"});
  fields.Add("metrics", options.metrics, "metrics to show, such as total_loss,board_acc",
             {.metavar = "NAME,NAME,..."});
  return fields;
}

int Run(const PlotOptions& options, const Context& context) {
  namespace fs = std::filesystem;
  const bool folder = fs::is_directory(options.run);
  const fs::path log = folder ? fs::path(options.run) / "metrics.jsonl" : fs::path(options.run);
  const std::string out =
      options.out.empty() ? (log.parent_path() / "curves.svg").string() : options.out;
  std::vector<std::string> metrics;
  for (const std::string& names : options.metrics) {
    for (std::string_view name : Split(names, ',')) metrics.emplace_back(name);
  }
  const io::Curves curves = io::ReadCurves(log);
  io::WriteCurves(out, curves,
                  {.metrics = std::move(metrics),
                   .title = fs::absolute(log).lexically_normal().parent_path().filename()});
  if (context.json) {
    PrintJson({{"out", out}, {"curves", curves.size()}});
  } else {
    fmt::print("{} written\n", out);
  }
  return 0;
}

}  // namespace

Command TrainPlot() {
  return MakeCommand<PlotOptions>(
      {.name = "train plot",
       .group = "Training",
       .summary = "draw the curves of a training run as an SVG picture",
       .details = "Reads metrics.jsonl; works while the run goes on.",
       .example = "kibitz train plot checkpoints/finetune --metrics total_loss,board_acc"},
      Run);
}

}  // namespace kibitz::cli
