// A report as one HTML file that needs nothing from outside: headings, text, tables, and plots as
// inline SVG.
//
//   Page page("A against B");
//   page.Table({"player", "points"}, {{"A", "12.5"}, {"B", "7.5"}});
//   page.Plot(LinePlot({.title = "Elo", .lines = {line}}));
//   page.Write("report.html");
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kibitz::arena {

class Page {
 public:
  explicit Page(std::string title);

  void Heading(const std::string& text);
  void Text(const std::string& text);
  // As it is, in a fixed font: a report for the terminal.
  void Verbatim(const std::string& text);
  // The first column is text, the others are set as numbers.
  void Table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows);
  // `svg` comes from one of the functions below.
  void Plot(const std::string& svg);

  std::string Html() const;
  // Throws Error.
  void Write(const std::string& path) const;

 private:
  std::string title_;
  std::string body_;
};

// A curve, with the band of its error where `low` and `high` are given.
struct PlotLine {
  std::string name;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};  // As long as y, or empty.
  std::vector<double> high = {};
};

struct LinePlotOptions {
  std::string title;
  std::string x_title = {};
  std::vector<PlotLine> lines = {};
  bool diagonal = false;  // Dotted, from (0, 0) to (1, 1): where a calibrated player would be.
  bool points = false;    // Marks on the lines.
};
// Values that are not finite are left out.
std::string LinePlot(const LinePlotOptions& options);

// A bar for each name, with the 95% interval of its value.
struct PlotBar {
  std::string name;
  double value = 0;
  double low = 0;
  double high = 0;
};
std::string BarPlot(const std::string& title, const std::vector<PlotBar>& bars);

// One bar for each name, cut into shares: wins, draws and losses.
struct ShareBar {
  std::string name;
  std::vector<std::pair<std::string, double>> parts;  // Name and count.
};
std::string SharePlot(const std::string& title, const std::vector<ShareBar>& bars);

}  // namespace kibitz::arena
