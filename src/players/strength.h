// Playing strength of a network by temperature, as measured: the file ratings.json of its folder,
// with "anchor", what was played against, and "ratings", a list of "temperature" and "elo".
//
//   const auto table = ReadStrengthTable("models/policy-small");
//   const double temperature = TemperatureFor(*table, 900);
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kibitz::players {

struct StrengthPoint {
  double temperature = 0;
  double elo = 0;
};

// At least two points, the temperatures rising and the ratings falling.
struct StrengthTable {
  std::string anchor;
  std::vector<StrengthPoint> points;
};

// Nothing when the model has no such file. Throws Error when it has a wrong one.
std::optional<StrengthTable> ReadStrengthTable(const std::string& model_path);

// On a line between the two nearest points; beyond the ends, the end's.
double TemperatureFor(const StrengthTable& table, double elo);

}  // namespace kibitz::players
