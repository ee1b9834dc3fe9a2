#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/inspect.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestList = 24;  // That people are shown; programs get everything.

struct FileShowOptions {
  std::vector<std::string> paths;
  int rows = 3;
  int parts = 60;
};

Fields FieldsOf(FileShowOptions& options) {
  Fields fields;
  fields.Add("paths", options.paths, "files, or folders of Parquet files",
             {.required = true, .positional = true, .metavar = "PATH"});
  fields.Add("rows", options.rows, "first rows to show", {.min = 0, .max = 10000});
  fields.Add("parts", options.parts, "columns, tensors or values to list; --json lists all",
             {.min = 0});
  return fields;
}

// A cell for people: texts bare, lists as [2, 3].
std::string CellText(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& item : value) text += (text.size() > 1 ? ", " : "") + CellText(item);
    return text + "]";
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Aligned columns under their names; the last one is not padded.
void PrintParts(const io::FileReport& report, size_t max) {
  if (report.parts.empty()) return;
  const size_t shown = std::min(max, report.parts.size());
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& [key, unused] : report.parts[0].items()) lines[0].push_back(key);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const auto& [unused, value] : report.parts[i].items()) line.push_back(CellText(value));
  }
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  fmt::print("\n{} {}\n", report.parts.size(), report.parts_name);
  for (const auto& line : lines) {
    std::string text = " ";
    for (size_t i = 0; i < line.size(); ++i) {
      text += fmt::format(" {:{}} ", line[i],
                          i + 1 < line.size() ? std::min(widths[i], size_t{60}) : 0);
    }
    while (text.ends_with(' ')) text.pop_back();
    fmt::print("{}\n", text);
  }
  if (shown < report.parts.size()) {
    fmt::print("  ... and {} more (--parts N, --json)\n", report.parts.size() - shown);
  }
}

void Print(const io::FileReport& report, size_t max_parts) {
  fmt::print("{}: {}\n", report.path, report.format);
  for (const auto& [key, value] : report.facts.items()) {
    fmt::print("  {:14} {}\n", key, CellText(value));
  }
  PrintParts(report, max_parts);
  if (report.rows.empty()) return;
  fmt::print("\nfirst rows\n");
  for (const Json& row : report.rows) fmt::print("  {}\n", CellText(row));
}

int Run(const FileShowOptions& options, const Context& context) {
  bool first = true;
  for (const std::string& path : options.paths) {
    std::error_code error;
    const auto size =
        std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
    Progress progress("bytes", size);
    const io::FileReport report =
        io::InspectFile(path, {.rows = static_cast<size_t>(options.rows),
                               .cut = context.json ? 0 : kLongestList,
                               .on_bytes = [&](uint64_t bytes) {
                                 ThrowIfInterrupted();
                                 progress.Add(bytes - std::min(bytes, progress.done()));
                               }});
    if (context.json) {
      PrintJson(report.ToTree());
      continue;
    }
    if (!first) fmt::print("\n");
    first = false;
    Print(report, static_cast<size_t>(options.parts));
  }
  return 0;
}

}  // namespace

Command FileShow() {
  return MakeCommand<FileShowOptions>(
      {.name = "file show",
       .group = "Files",
       .summary = "show what a file holds: schema or tree, shapes, types, counts, first rows",
       .details = "Reads Parquet, .pt, .safetensors, .npy, SQLite, TensorBoard events, JSON, JSON "
                  "lines,\n"
                  "tar archives, lc0's training data and text, also compressed by gzip or zstd. "
                  "The content\n"
                  "decides, not the file name.",
       .example = "kibitz file show models/policy-small/model.safetensors"},
      Run);
}

}  // namespace kibitz::cli
