#include "cli/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/svg.h"
#include "io/tables/jsonl.h"

namespace kibitz::cli {
namespace {

using svg::Escaped;
using svg::kColors;
using svg::Range;
using svg::Ticks;

// Sizes in pixels. A row's panels share kWidth.
constexpr double kWidth = 1080;
constexpr double kHeight = 230;  // Of a panel, with its margins.
constexpr double kLeft = 58;
constexpr double kRight = 24;
constexpr double kTop = 34;
constexpr double kBottom = 34;
constexpr double kLegendLine = 20;
constexpr double kLetter = 7;       // A letter of the legend, about.
constexpr size_t kMaxPoints = 800;  // Of a curve; more than a panel can show.

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
};

struct Line {
  std::string kind;  // "raw", "train", "val": the SVG class.
  std::string color;
  bool dashed = false;
  Points points;
};

struct Panel {
  std::string title;
  std::vector<Line> lines;
  std::vector<std::pair<std::string, std::pair<double, double>>> best;  // Colour, step and value.
};

// 1500 -> "1.5k".
std::string StepText(double step) {
  if (step >= 1e6) return fmt::format("{:g}M", step / 1e6);
  return step >= 1e3 ? fmt::format("{:g}k", step / 1e3) : fmt::format("{:g}", step);
}

const Points* Find(const Curves& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() || found->second.empty() ? nullptr : &found->second;
}

Points Thinned(const Points& points) {
  const size_t stride = (points.size() + kMaxPoints - 1) / kMaxPoints;
  if (stride <= 1) return points;
  Points kept;
  for (size_t i = 0; i < points.size(); i += stride) kept.push_back(points[i]);
  if (kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

// The values a panel shows. Single spikes of a raw curve must not flatten the rest: its outermost
// percents do not count.
Range ValuesOf(const Panel& panel) {
  Range range;
  for (const Line& line : panel.lines) {
    std::vector<double> values;
    for (const auto& [step, value] : line.points) values.push_back(value);
    std::sort(values.begin(), values.end());
    const size_t cut = line.kind == "raw" ? values.size() / 50 : 0;
    range.Include(values[cut]);
    range.Include(values[values.size() - 1 - cut]);
  }
  const double margin = (range.high - range.low) * 0.04;
  return {range.low - margin, range.high + margin};
}

class PanelWriter {
 public:
  PanelWriter(const Panel& panel, const Box& box, const Range& steps, size_t number)
      : panel_(panel), box_(box), steps_(steps), values_(ValuesOf(panel)), number_(number) {}

  std::string Svg() const {
    std::string svg = fmt::format("<text x='{:.0f}' y='{:.0f}' font-weight='600'>{}</text>\n",
                                  box_.x + kLeft, box_.y + 22, Escaped(panel_.title));
    svg += Grid();
    svg += fmt::format(
        "<clipPath id='clip{}'><rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>"
        "</clipPath>\n<g clip-path='url(#clip{})'>\n",
        number_, box_.x + kLeft, box_.y + kTop, box_.width - kLeft - kRight,
        kHeight - kTop - kBottom, number_);
    for (const Line& line : panel_.lines) svg += LineSvg(line);
    svg += "</g>\n";
    for (const auto& [color, point] : panel_.best) {
      svg += fmt::format(
          "<line class='best' stroke='{}' x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}'/>"
          "<circle class='best' stroke='{}' cx='{:.1f}' cy='{:.1f}' r='4'/>\n",
          color, X(point.first), X(point.first), box_.y + kTop, box_.y + kHeight - kBottom, color,
          X(point.first), Y(point.second));
    }
    return svg;
  }

 private:
  double X(double step) const {
    return box_.x + kLeft + steps_.Share(step) * (box_.width - kLeft - kRight);
  }
  double Y(double value) const {
    return box_.y + kHeight - kBottom - values_.Share(value) * (kHeight - kTop - kBottom);
  }
  std::string Grid() const {
    std::string svg;
    for (double tick : Ticks(values_)) {
      svg += fmt::format(
          "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' class='grid'/>"
          "<text x='{:.1f}' y='{:.1f}' text-anchor='end' class='tick'>{:g}</text>\n",
          box_.x + kLeft, box_.x + box_.width - kRight, Y(tick), Y(tick), box_.x + kLeft - 6,
          Y(tick) + 4, tick);
    }
    for (double tick : Ticks(steps_)) {
      svg +=
          fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle' class='tick'>{}</text>\n",
                      X(tick), box_.y + kHeight - kBottom + 16, StepText(tick));
    }
    return svg;
  }
  std::string LineSvg(const Line& line) const {
    std::string points;
    for (const auto& [step, value] : Thinned(line.points)) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", X(step), Y(value));
    }
    std::string svg = fmt::format("<polyline class='{}' stroke='{}'{} points='{}'/>\n", line.kind,
                                  line.color, line.dashed ? " stroke-dasharray='5 3'" : "", points);
    if (line.points.size() == 1) {  // A line of one point shows nothing.
      svg += fmt::format("<circle fill='{}' cx='{:.1f}' cy='{:.1f}' r='3'/>\n", line.color,
                         X(line.points[0].first), Y(line.points[0].second));
    }
    return svg;
  }

  const Panel& panel_;
  const Box box_;
  const Range steps_;
  const Range values_;
  const size_t number_;
};

// With one run, training and validation have a colour each; with several, each run has one.
std::string TrainColor(size_t run) { return kColors[run % kColors.size()]; }
std::string ValColor(size_t run, size_t runs) { return TrainColor(runs == 1 ? 1 : run); }

std::vector<std::string> MetricsToShow(std::span<const RunCurves> runs,
                                       const PlotOptions& options) {
  std::vector<std::string> wanted = options.metrics;
  if (wanted.empty()) {
    wanted = {"total_loss",     "move_acc",          "top5_acc", "deep_acc",  "board_acc",
              "final_move_acc", "thinking_move_acc", "wl_mae",   "grad_norm", "lr"};
  }
  std::erase_if(wanted, [&](const std::string& name) {
    return std::none_of(runs.begin(), runs.end(), [&](const RunCurves& run) {
      return Find(run.curves, "train/" + name) != nullptr ||
             Find(run.curves, "val/" + name) != nullptr;
    });
  });
  if (!wanted.empty()) return wanted;
  std::set<std::string> known;
  for (const RunCurves& run : runs) {
    for (const auto& [name, points] : run.curves) known.insert(name.substr(name.find('/') + 1));
  }
  throw Error(
      "nothing to plot: found metrics {}; expected {}",
      known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
      options.metrics.empty() ? "total_loss" : fmt::format("{}", fmt::join(options.metrics, ", ")));
}

Panel PanelOf(const std::string& metric, std::span<const RunCurves> runs, double smooth) {
  Panel panel{.title = metric, .lines = {}, .best = {}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const Curves& curves = runs[i].curves;
    if (const Points* train = Find(curves, "train/" + metric)) {
      const bool smoothed = smooth > 0 && metric != "lr" && train->size() > 2;
      if (smoothed) panel.lines.push_back({"raw", TrainColor(i), false, *train});
      panel.lines.push_back(
          {"train", TrainColor(i), false, smoothed ? Smoothed(*train, smooth) : *train});
    }
    const Points* val = Find(curves, "val/" + metric);
    if (val == nullptr) continue;
    const std::string color = ValColor(i, runs.size());
    panel.lines.push_back({"val", color, runs.size() > 1, *val});
    const auto best = BestStep(curves);
    if (!best) continue;
    for (const auto& point : *val) {
      if (point.first == best->first) panel.best.emplace_back(color, point);
    }
  }
  return panel;
}

// Where the panels stand: three a row, or two where there are few. What does not fill a row comes
// first, so that the loss gets the room and no place stays empty.
std::vector<Box> Layout(size_t panels, double top) {
  const size_t columns = panels <= 4 ? std::min<size_t>(panels, 2) : 3;
  size_t left = panels % columns == 0 ? columns : panels % columns;
  std::vector<Box> boxes;
  for (double y = top; boxes.size() < panels; y += kHeight, left = columns) {
    const double width = kWidth / static_cast<double>(left);
    for (size_t i = 0; i < left; ++i) boxes.push_back({width * static_cast<double>(i), y, width});
  }
  return boxes;
}

struct LegendItem {
  std::string color;
  bool dashed = false;
  std::string text;
};

std::string BestText(const RunCurves& run) {
  const auto best = BestStep(run.curves);
  return best ? fmt::format("best step {:.0f}, validation loss {:.4g}", best->first, best->second)
              : "";
}

bool HasVal(const RunCurves& run) {
  return std::any_of(run.curves.begin(), run.curves.end(),
                     [](const auto& curve) { return curve.first.starts_with("val/"); });
}

std::vector<LegendItem> LegendOf(std::span<const RunCurves> runs, double smooth) {
  std::vector<LegendItem> items;
  const std::string train =
      smooth > 0 ? fmt::format("train, smoothed by {:g}", smooth) : std::string("train");
  if (runs.size() == 1) {
    items.push_back({TrainColor(0), false, train});
    const std::string best = BestText(runs[0]);
    if (HasVal(runs[0])) {
      items.push_back({ValColor(0, 1), false, best.empty() ? "validation" : "validation; " + best});
    }
    return items;
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string best = BestText(runs[i]);
    items.push_back({TrainColor(i), false, runs[i].name + (best.empty() ? "" : " (" + best + ")")});
  }
  items.push_back({"#666666", false, train});
  if (std::any_of(runs.begin(), runs.end(), HasVal)) {
    items.push_back({"#666666", true, "validation"});
  }
  return items;
}

// Items from left to right, in as many lines as they need; `y` ends below them.
std::string LegendSvg(const std::vector<LegendItem>& items, double& y) {
  std::string svg;
  double x = kLeft;
  for (const LegendItem& item : items) {
    const double width = 46 + kLetter * static_cast<double>(item.text.size());
    if (x > kLeft && x + width > kWidth) {
      x = kLeft;
      y += kLegendLine;
    }
    svg += fmt::format(
        "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='{}' stroke-width='2'{}/>"
        "<text class='legend' x='{:.1f}' y='{:.1f}'>{}</text>\n",
        x, x + 22, y + 9, y + 9, item.color, item.dashed ? " stroke-dasharray='5 3'" : "", x + 28,
        y + 13, Escaped(item.text));
    x += width;
  }
  y += kLegendLine;
  return svg;
}

}  // namespace

Curves ReadCurves(const std::string& path) {
  Curves curves;
  io::JsonLines lines(path);
  std::string problem;
  while (const io::JsonLine* line = lines.Next()) {
    if (!problem.empty()) throw Error("{}", problem);
    if (!line->ok()) {
      problem = line->problem();
      continue;
    }
    const std::optional<double> step = line->root()["step"].OptionalDouble();
    if (!step) continue;
    const std::string kind(line->root()["kind"].OptionalString().value_or("train"));
    for (const io::JsonValue field : line->root().Fields()) {
      const bool number =
          field.kind() == io::JsonKind::kInt || field.kind() == io::JsonKind::kDouble;
      if (!number || field.key() == "step") continue;
      Points& points = curves[fmt::format("{}/{}", kind, field.key())];
      while (!points.empty() && points.back().first >= *step) points.pop_back();
      points.emplace_back(*step, field.Double());
    }
  }
  if (!problem.empty()) LogWarn("{}; the last line is skipped", problem);
  return curves;
}

std::optional<std::pair<double, double>> BestStep(const Curves& curves) {
  const Points* losses = Find(curves, "val/total_loss");
  if (losses == nullptr) return std::nullopt;
  return *std::min_element(losses->begin(), losses->end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

Points Smoothed(const Points& points, double weight) {
  Points smooth;
  double average = 0;
  double correction = 0;  // The sum of the weights so far.
  for (const auto& [step, value] : points) {
    average = weight * average + (1 - weight) * value;
    correction = weight * correction + (1 - weight);
    smooth.emplace_back(step, average / correction);
  }
  return smooth;
}

void WriteCurves(const std::string& path, std::span<const RunCurves> runs,
                 const PlotOptions& options) {
  const std::vector<std::string> metrics = MetricsToShow(runs, options);
  std::vector<Panel> panels;
  Range steps;
  for (const std::string& metric : metrics) {
    panels.push_back(PanelOf(metric, runs, options.smooth));
    for (const Line& line : panels.back().lines) {
      steps.Include(line.points.front().first);
      steps.Include(line.points.back().first);
    }
  }
  double top = options.title.empty() ? 8 : 32;
  const std::string legend = LegendSvg(LegendOf(runs, options.smooth), top);
  const std::vector<Box> boxes = Layout(panels.size(), top);
  const double height = boxes.back().y + kHeight + 12;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
      "height='{1:.0f}' font-family='system-ui,sans-serif' font-size='13'>\n"
      "<style>.grid{{stroke:#ddd}} .tick{{fill:#666;font-size:11px}} .legend{{font-size:12px}} "
      "polyline{{fill:none;stroke-width:1.6;stroke-linejoin:round}} .raw{{opacity:.3;"
      "stroke-width:1}} line.best{{stroke-dasharray:2 3;opacity:.7}} circle.best{{fill:white;"
      "stroke-width:2}}</style>\n<rect width='100%' height='100%' fill='white'/>\n",
      kWidth, height);
  if (!options.title.empty()) {
    svg += fmt::format("<text x='{:.0f}' y='24' font-size='15' font-weight='600'>{}</text>\n",
                       kLeft, Escaped(options.title));
  }
  svg += legend;
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += PanelWriter(panels[i], boxes[i], steps, i).Svg();
  }
  svg += fmt::format(
      "<text x='{:.0f}' y='{:.0f}' text-anchor='middle' class='tick'>training "
      "step</text>\n</svg>\n",
      kWidth / 2, height - 8);
  WriteFileAtomically(path, svg);
}

}  // namespace kibitz::cli
