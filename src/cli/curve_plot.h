// Curves of training runs as a self-contained SVG picture: one panel a metric, every run in it.
//
//   const std::vector<RunCurves> runs = {{.name = "a", .curves = ReadCurves("a/metrics.jsonl")}};
//   WriteCurves("curves.svg", runs, {.metrics = {"total_loss"}});
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kibitz::cli {

using Points = std::vector<std::pair<double, double>>;  // (step, value), steps rise.

// By "train/total_loss", "val/total_loss", ...
using Curves = std::map<std::string, Points>;

// From metrics.jsonl: lines with "step", "kind" and numbers. Where steps fall back, because a run
// resumed from an older checkpoint, the later lines count. An unfinished last line is skipped: the
// run may be writing it. Throws Error.
Curves ReadCurves(const std::string& path);

struct RunCurves {
  std::string name;  // For the legend.
  Curves curves;
};

// The step with the lowest validation loss, whose weights best.pt holds, and that loss; nothing
// without validation.
std::optional<std::pair<double, double>> BestStep(const Curves& curves);

// The exponential moving average that TensorBoard shows: each value keeps `weight`, in [0, 1), of
// the average before it, corrected for the start.
Points Smoothed(const Points& points, double weight);

struct PlotOptions {
  std::vector<std::string> metrics = {};  // Panels, in this order; empty: the usual ones.
  std::string title = {};
  double smooth = 0;  // Weight for training curves; the raw ones stay faintly visible behind.
};

// Throws Error when no run has a point of the metrics.
void WriteCurves(const std::string& path, std::span<const RunCurves> runs,
                 const PlotOptions& options);

}  // namespace kibitz::cli
