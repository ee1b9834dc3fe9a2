// Reports what a file holds: its format (by content, not by name), its shape, its first rows.
//
//   const FileReport report = InspectFile("model.pt", {.rows = 5});
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kibitz::io {

struct FileReport {
  std::string path;
  std::string format;  // "parquet", "pt", "safetensors", "npy", "jsonl", "json", "sqlite", ...
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();  // Sizes, counts, versions.
  // One table of the file's parts: columns, tensors, values, tables, tags or keys.
  std::string parts_name;
  std::vector<nlohmann::ordered_json> parts;  // Objects with the same keys.
  std::vector<nlohmann::ordered_json> rows;   // The first rows, as JSON.
  std::string end;                            // Of a text: its last bytes.

  // All of it as one object.
  nlohmann::ordered_json ToTree() const;
};

struct InspectOptions {
  size_t rows = 3;  // First rows to show.
  // The longest list within a row; texts are cut at ten times this. 0: nothing is cut.
  size_t cut = 24;
  // Called now and then while a file without counts is read through; may throw to stop.
  std::function<void(uint64_t bytes)> on_bytes = {};
};

// A file, or a folder of Parquet files. Throws Error when it is damaged.
FileReport InspectFile(const std::string& path, const InspectOptions& options = {});

}  // namespace kibitz::io
