#include "arena/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/atomic_file.h"
#include "base/svg.h"

namespace kibitz::arena {
namespace {

using svg::Escaped;
using svg::kColors;

// Sizes in pixels.
constexpr double kPlotWidth = 720;
constexpr double kPlotHeight = 260;
constexpr double kLeftMargin = 64;
constexpr double kRightMargin = 20;
constexpr double kTopMargin = 34;
constexpr double kBottomMargin = 42;
constexpr double kBarHeight = 22;
constexpr double kNameWidth = 230;

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px "
    "solid #ddd;text-align:right;font-variant-numeric:tabular-nums}th:first-child,td:first-child"
    "{text-align:left}th{border-bottom:2px solid #888}pre{background:#f6f6f6;padding:.8rem;"
    "overflow:auto}svg{max-width:100%;height:auto;display:block;margin:1rem 0}";

std::string Open(double height) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
      "height='{1:.0f}' font-family='system-ui,sans-serif' font-size='12' role='img'>\n",
      kPlotWidth, height);
}

std::string Label(double x, double y, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     Escaped(text));
}

std::string Title(const std::string& text) {
  return fmt::format("<text x='{:.0f}' y='20' font-size='14' font-weight='600'>{}</text>\n",
                     kLeftMargin, Escaped(text));
}

// A name that fits beside a bar: of a long one the end, which tells players apart.
std::string Fitting(const std::string& name) {
  constexpr size_t kLetters = 34;
  return name.size() <= kLetters ? name : "…" + name.substr(name.size() - kLetters + 1);
}

const char* ColorOf(size_t i) { return kColors[i % kColors.size()]; }

// The area of a line plot.
class Frame {
 public:
  explicit Frame(const LinePlotOptions& options) {
    for (const PlotLine& line : options.lines) {
      for (size_t i = 0; i < line.x.size(); ++i) {
        if (!std::isfinite(line.y[i])) continue;
        x_.Include(line.x[i]);
        y_.Include(line.y[i]);
      }
    }
    if (options.diagonal) {
      for (double end : {0.0, 1.0}) {
        x_.Include(end);
        y_.Include(end);
      }
    }
    if (!(x_.high >= x_.low)) x_ = y_ = {0, 1};
    const double margin = std::max(0.06 * (y_.high - y_.low), 1e-9);
    // Bands may be far wider than the curve in the first games: they do not set the scale.
    y_ = {y_.low - margin, y_.high + margin};
  }

  double X(double value) const {
    return kLeftMargin + x_.Share(value) * (kPlotWidth - kLeftMargin - kRightMargin);
  }
  double Y(double value) const {
    const double share = std::clamp(y_.Share(value), 0.0, 1.0);
    return kPlotHeight - kBottomMargin - share * (kPlotHeight - kTopMargin - kBottomMargin);
  }
  std::string Grid() const {
    std::string out;
    for (double tick : svg::Ticks(y_)) {
      out += fmt::format("<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>\n",
                         kLeftMargin, kPlotWidth - kRightMargin, Y(tick), Y(tick));
      out += Label(kLeftMargin - 6, Y(tick) + 4, fmt::format("{:g}", tick), "end");
    }
    for (double tick : svg::Ticks(x_)) {
      out += Label(X(tick), kPlotHeight - kBottomMargin + 16, fmt::format("{:g}", tick), "middle");
    }
    return out;
  }

 private:
  svg::Range x_;
  svg::Range y_;
};

std::string BandOf(const PlotLine& line, const Frame& frame, const char* color) {
  if (line.low.empty()) return "";
  std::string points;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (!std::isfinite(line.y[i])) continue;
    points += fmt::format("{:.1f},{:.1f} ", frame.X(line.x[i]), frame.Y(line.low[i]));
  }
  for (size_t i = line.x.size(); i-- > 0;) {
    if (!std::isfinite(line.y[i])) continue;
    points += fmt::format("{:.1f},{:.1f} ", frame.X(line.x[i]), frame.Y(line.high[i]));
  }
  return fmt::format("<polygon points='{}' fill='{}' opacity='0.15'/>\n", points, color);
}

}  // namespace

Page::Page(std::string title) : title_(std::move(title)) {}

void Page::Heading(const std::string& text) {
  body_ += fmt::format("<h2>{}</h2>\n", Escaped(text));
}

void Page::Text(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", Escaped(text)); }

void Page::Verbatim(const std::string& text) {
  std::string lines;
  size_t at = 0;
  while (at < text.size()) {  // Escaped drops line ends.
    const size_t end = std::min(text.find('\n', at), text.size());
    lines += Escaped(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  body_ += "<pre>" + lines + "</pre>\n";
}

void Page::Table(const std::vector<std::string>& header,
                 const std::vector<std::vector<std::string>>& rows) {
  body_ += "<table><thead><tr>";
  for (const std::string& cell : header) body_ += "<th>" + Escaped(cell) + "</th>";
  body_ += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) body_ += "<td>" + Escaped(cell) + "</td>";
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table>\n";
}

void Page::Plot(const std::string& svg) { body_ += svg; }

std::string Page::Html() const {
  return fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width, initial-scale=1'>"
      "<title>{0}</title><style>{1}</style></head>\n<body><h1>{0}</h1>\n{2}</body></html>\n",
      Escaped(title_), kStyle, body_);
}

void Page::Write(const std::string& path) const { WriteFileAtomically(path, Html()); }

std::string LinePlot(const LinePlotOptions& options) {
  const Frame frame(options);
  std::string out = Open(kPlotHeight) + Title(options.title) + frame.Grid();
  if (options.diagonal) {
    out += fmt::format(
        "<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='#888' "
        "stroke-dasharray='3 4'/>\n",
        frame.X(0), frame.Y(0), frame.X(1), frame.Y(1));
  }
  double legend = kPlotWidth - kRightMargin;
  for (size_t i = 0; i < options.lines.size(); ++i) {
    const PlotLine& line = options.lines[i];
    out += BandOf(line, frame, ColorOf(i));
    std::string points;
    std::string marks;
    for (size_t k = 0; k < line.x.size(); ++k) {
      if (!std::isfinite(line.y[k])) continue;
      points += fmt::format("{:.1f},{:.1f} ", frame.X(line.x[k]), frame.Y(line.y[k]));
      if (!options.points && line.x.size() > 1) continue;
      marks += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3.5' fill='{}'/>\n",
                           frame.X(line.x[k]), frame.Y(line.y[k]), ColorOf(i));
    }
    out += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.8'/>\n{}",
                       points, ColorOf(i), marks);
    if (options.lines.size() > 1) {
      out += fmt::format("<text x='{:.1f}' y='20' text-anchor='end' fill='{}'>{}</text>\n", legend,
                         ColorOf(i), Escaped(line.name));
      legend -= 16 + 7 * static_cast<double>(line.name.size());
    }
  }
  if (!options.x_title.empty()) {
    out += Label(kPlotWidth / 2, kPlotHeight - 8, options.x_title, "middle");
  }
  return out + "</svg>\n";
}

std::string BarPlot(const std::string& title, const std::vector<PlotBar>& bars) {
  svg::Range range{0, 0};
  for (const PlotBar& bar : bars) {
    for (double value : {bar.value, bar.low, bar.high}) {
      if (std::isfinite(value)) range.Include(value);
    }
  }
  const double height = kTopMargin + kBarHeight * static_cast<double>(bars.size()) + 28;
  const auto x = [&](double value) {
    return kNameWidth +
           std::clamp(range.Share(value), 0.0, 1.0) * (kPlotWidth - kNameWidth - kRightMargin);
  };
  std::string out = Open(height) + Title(title);
  for (double tick : svg::Ticks(range)) {
    out +=
        fmt::format("<line x1='{0:.1f}' x2='{0:.1f}' y1='{1:.1f}' y2='{2:.1f}' stroke='#ddd'/>\n",
                    x(tick), kTopMargin - 4, height - 24);
    out += Label(x(tick), height - 8, fmt::format("{:g}", tick), "middle");
  }
  for (size_t i = 0; i < bars.size(); ++i) {
    const PlotBar& bar = bars[i];
    const double y = kTopMargin + kBarHeight * static_cast<double>(i);
    out += Label(kNameWidth - 8, y + 14, Fitting(bar.name), "end");
    const double from = std::min(x(0), x(bar.value));
    out += fmt::format(
        "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}' opacity='0.75'/>\n",
        from, y + 2, std::abs(x(bar.value) - x(0)), kBarHeight - 6, kColors[0]);
    if (std::isfinite(bar.low) && std::isfinite(bar.high)) {
      out += fmt::format(
          "<line x1='{0:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{2:.1f}' stroke='#222' "
          "stroke-width='1.5'/>\n",
          x(bar.low), x(bar.high), y + kBarHeight / 2 - 1);
    }
  }
  return out + "</svg>\n";
}

std::string SharePlot(const std::string& title, const std::vector<ShareBar>& bars) {
  const double height = kTopMargin + 1.3 * kBarHeight * static_cast<double>(bars.size()) + 12;
  constexpr std::array kShades = {"#009e73", "#bbbbbb", "#d55e00", "#0072b2"};
  std::string out = Open(height) + Title(title);
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = kTopMargin + 1.3 * kBarHeight * static_cast<double>(i);
    out += Label(kNameWidth - 8, y + 15, Fitting(bars[i].name), "end");
    double sum = 0;
    for (const auto& part : bars[i].parts) sum += part.second;
    double x = kNameWidth;
    for (size_t k = 0; k < bars[i].parts.size() && sum > 0; ++k) {
      const auto& [name, count] = bars[i].parts[k];
      const double width = count / sum * (kPlotWidth - kNameWidth - kRightMargin);
      out += fmt::format(
          "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'><title>{}: {:g}"
          "</title></rect>\n",
          x, y, width, kBarHeight, kShades[k % kShades.size()], Escaped(name), count);
      if (width > 34) out += Label(x + width / 2, y + 15, fmt::format("{:g}", count), "middle");
      x += width;
    }
  }
  return out + "</svg>\n";
}

}  // namespace kibitz::arena
