#include "cli/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "io/tables/jsonl.h"

namespace kibitz::io {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kWidth = 360;  // Of a panel, with its margins.
constexpr double kHeight = 230;
constexpr double kLeft = 52;
constexpr double kRight = 14;
constexpr double kTop = 34;
constexpr double kBottom = 34;
constexpr int kColumns = 2;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double Share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// The distance between round numbers that cuts the range into three to six parts.
double RoundStep(const Range& range) {
  const double rough = std::max(range.high - range.low, 1e-12) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

std::vector<double> Ticks(const Range& range) {
  std::vector<double> ticks;
  const double step = RoundStep(range);
  for (double at = std::ceil(range.low / step) * step; at <= range.high + step * 1e-6; at += step) {
    ticks.push_back(std::abs(at) < step * 1e-6 ? 0 : at);
  }
  return ticks;
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

class Panel {
 public:
  Panel(double x, double y, std::string title, const Points* train, const Points* val)
      : x_(x), y_(y), title_(std::move(title)), train_(train), val_(val) {
    for (const Points* points : {train_, val_}) {
      if (points == nullptr) continue;
      for (const auto& [step, value] : *points) {
        steps_.Include(step);
        values_.Include(value);
      }
    }
  }

  std::string Svg() const {
    std::string svg = fmt::format("<text x='{:.0f}' y='{:.0f}' font-weight='600'>{}</text>\n",
                                  x_ + kLeft, y_ + 20, Escaped(title_));
    for (double tick : Ticks(values_)) {
      svg += fmt::format(
          "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' class='grid'/>"
          "<text x='{:.1f}' y='{:.1f}' text-anchor='end' class='tick'>{:g}</text>\n",
          x_ + kLeft, x_ + kWidth - kRight, Y(tick), Y(tick), x_ + kLeft - 6, Y(tick) + 4, tick);
    }
    for (double tick : Ticks(steps_)) {
      svg +=
          fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle' class='tick'>{}</text>\n",
                      X(tick), y_ + kHeight - kBottom + 16, HumanCount(tick));
    }
    if (train_ != nullptr) svg += Line(*train_, "train");
    if (val_ != nullptr) svg += Line(*val_, "val");
    return svg;
  }

 private:
  double X(double step) const {
    return x_ + kLeft + steps_.Share(step) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return y_ + kHeight - kBottom - values_.Share(value) * (kHeight - kTop - kBottom);
  }
  std::string Line(const Points& points, std::string_view name) const {
    std::string svg = fmt::format("<polyline class='{}' points='", name);
    for (const auto& [step, value] : points)
      svg += fmt::format("{:.1f},{:.1f} ", X(step), Y(value));
    svg += "'/>\n";
    if (points.size() == 1) {
      svg += fmt::format("<circle class='{}' cx='{:.1f}' cy='{:.1f}' r='3'/>\n", name,
                         X(points[0].first), Y(points[0].second));
    }
    return svg;
  }

  double x_;
  double y_;
  std::string title_;
  const Points* train_;
  const Points* val_;
  Range steps_;
  Range values_;
};

const Points* Find(const Curves& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<std::string> MetricsToShow(const Curves& curves, const PlotOptions& options) {
  std::vector<std::string> wanted = options.metrics;
  if (wanted.empty()) {
    wanted = {"total_loss",        "board_acc", "final_move_acc", "move_acc",
              "thinking_move_acc", "wl_mae",    "grad_norm"};
  }
  std::erase_if(wanted, [&](const std::string& name) {
    return Find(curves, "train/" + name) == nullptr && Find(curves, "val/" + name) == nullptr;
  });
  if (!wanted.empty()) return wanted;
  std::string known;
  for (const auto& [name, points] : curves) known += (known.empty() ? "" : ", ") + name;
  throw Error("nothing to plot: no metric asked for is in the log; it has {}",
              known.empty() ? "none" : known);
}

}  // namespace

Curves ReadCurves(const std::string& path) {
  Curves curves;
  JsonLines lines(path);
  while (const JsonLine* line = lines.Next()) {
    if (!line->ok()) throw Error("{}", line->problem());
    const std::optional<double> step = line->root()["step"].OptionalDouble();
    if (!step) continue;
    const std::string kind(line->root()["kind"].OptionalString().value_or("train"));
    for (const JsonValue field : line->root().Fields()) {
      const bool number = field.kind() == JsonKind::kInt || field.kind() == JsonKind::kDouble;
      if (!number || field.key() == "step") continue;
      curves[fmt::format("{}/{}", kind, field.key())].emplace_back(*step, field.Double());
    }
  }
  return curves;
}

void WriteCurves(const std::string& path, const Curves& curves, const PlotOptions& options) {
  const std::vector<std::string> metrics = MetricsToShow(curves, options);
  const size_t rows = (metrics.size() + kColumns - 1) / kColumns;
  const double head = options.title.empty() ? 0 : 30;
  const double width = kWidth * static_cast<double>(std::min<size_t>(kColumns, metrics.size()));
  const double height = head + kHeight * static_cast<double>(rows) + 24;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
      "height='{1:.0f}' font-family='system-ui,sans-serif' font-size='13'>\n"
      "<style>.grid{{stroke:#ddd}} .tick{{fill:#666;font-size:11px}} polyline{{fill:none;"
      "stroke-width:1.6}} .train{{stroke:#2463a8}} .val{{stroke:#d1495b}} "
      "circle.val{{fill:#d1495b}} circle.train{{fill:#2463a8}}</style>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  if (head > 0) {
    svg += fmt::format("<text x='{:.0f}' y='22' font-size='15' font-weight='600'>{}</text>\n",
                       kLeft, Escaped(options.title));
  }
  bool validated = false;
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Points* val = Find(curves, "val/" + metrics[i]);
    const size_t row = i / kColumns;
    validated = validated || val != nullptr;
    svg +=
        Panel(kWidth * static_cast<double>(i % kColumns), head + kHeight * static_cast<double>(row),
              metrics[i], Find(curves, "train/" + metrics[i]), val)
            .Svg();
  }
  const double foot = height - 10;
  svg += fmt::format(
      "<text x='{:.0f}' y='{:.0f}' class='tick'>steps; <tspan fill='#2463a8'>train"
      "</tspan>{}</text>\n</svg>\n",
      kLeft, foot, validated ? " <tspan fill='#d1495b'>validation</tspan>" : "");
  WriteFileAtomically(path, svg);
}

}  // namespace kibitz::io
