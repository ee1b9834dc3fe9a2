// Small parts of SVG pictures that every plot of ours shares: colours, round axis ticks, safe text.
//
//   svg::Range range;
//   for (double value : values) range.Include(value);
//   for (double tick : svg::Ticks(range)) Use(tick);
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::svg {

// Colours that stay apart for colour-blind readers (Okabe and Ito, yellow left out).
inline constexpr std::array kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                       "#56b4e9", "#e69f00", "#444444"};

// An axis: from the lowest to the highest value.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Include(double value);
  // Where the value lies, 0 at `low` and 1 at `high`.
  double Share(double value) const;
};

// Round numbers within the range, about six.
std::vector<double> Ticks(const Range& range);

// Text for XML and HTML, in quotes or not.
std::string Escaped(std::string_view text);

}  // namespace kibitz::svg
