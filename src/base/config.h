// YAML, TOML and JSON files as one tree of keys, with the line each key came from. The extension
// (.yaml .yml .toml .json) decides how a file is read.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace kibitz {

struct Config {
  std::string path;
  nlohmann::ordered_json tree;       // An object, or null for an empty file.
  std::map<std::string, int> lines;  // By dotted key, from 1. JSON files give none.

  // "run.yaml:12", or the path alone.
  std::string PlaceOf(const std::string& key) const;
};

// Throws Error with file and line.
Config LoadConfig(const std::string& path);

}  // namespace kibitz
