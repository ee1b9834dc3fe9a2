#include "base/svg.h"

#include <algorithm>
#include <cmath>

namespace kibitz::svg {
namespace {

// The distance between round numbers that cuts the range into at most six parts.
double RoundStep(const Range& range) {
  const double rough = std::max(range.high - range.low, 1e-12) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

}  // namespace

void Range::Include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

double Range::Share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }

std::vector<double> Ticks(const Range& range) {
  if (range.high <= range.low) return {range.low};
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
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ') out += c;
    }
  }
  return out;
}

}  // namespace kibitz::svg
