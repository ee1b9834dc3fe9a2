#include "players/strength.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace kibitz::players {

namespace fs = std::filesystem;

std::optional<StrengthTable> ReadStrengthTable(const std::string& model_path) {
  const fs::path file = fs::path(model_path) / "ratings.json";
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::ifstream input(file);
  StrengthTable table;
  try {
    const nlohmann::json read = nlohmann::json::parse(input);
    table.anchor = read.at("anchor").get<std::string>();
    for (const auto& point : read.at("ratings")) {
      table.points.push_back({.temperature = point.at("temperature").get<double>(),
                              .elo = point.at("elo").get<double>()});
    }
  } catch (const nlohmann::json::exception& wrong) {
    throw Error("{}: {}; expected \"anchor\" and \"ratings\" of temperature and elo", file.string(),
                wrong.what());
  }
  const auto in_order = [](const StrengthPoint& a, const StrengthPoint& b) {
    return a.temperature < b.temperature && a.elo > b.elo;
  };
  bool sound = table.points.size() >= 2 && table.points.front().temperature >= 0;
  for (size_t i = 1; i < table.points.size(); ++i) {
    sound = sound && in_order(table.points[i - 1], table.points[i]);
  }
  if (!sound) {
    throw Error("{}: expected two or more ratings with rising temperatures and falling elo",
                file.string());
  }
  return table;
}

double TemperatureFor(const StrengthTable& table, double elo) {
  const auto& points = table.points;
  const auto weaker =
      std::ranges::find_if(points, [&](const StrengthPoint& point) { return point.elo <= elo; });
  if (weaker == points.begin()) return points.front().temperature;
  if (weaker == points.end()) return points.back().temperature;
  const StrengthPoint& stronger = *(weaker - 1);
  const double share = (stronger.elo - elo) / (stronger.elo - weaker->elo);
  return stronger.temperature + share * (weaker->temperature - stronger.temperature);
}

}  // namespace kibitz::players
