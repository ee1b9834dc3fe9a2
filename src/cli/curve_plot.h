// Curves of a run as an SVG picture: one panel a metric, train and validation in it.
//
//   WriteCurves("curve.svg", ReadCurves("runs/a/metrics.jsonl"), {.metrics = {"total_loss"}});
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kibitz::io {

// Points (step, value) by "train/total_loss", "val/total_loss", ...
using Curves = std::map<std::string, std::vector<std::pair<double, double>>>;

// From metrics.jsonl: lines with "step", "kind" and numbers. Throws Error.
Curves ReadCurves(const std::string& path);

struct PlotOptions {
  std::vector<std::string> metrics = {};  // Panels, in this order; empty: what most runs have.
  std::string title = {};
};

// Throws Error when no metric asked for has a point.
void WriteCurves(const std::string& path, const Curves& curves, const PlotOptions& options);

}  // namespace kibitz::io
