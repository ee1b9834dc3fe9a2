#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/bytes/byte_source.h"
#include "io/inspect.h"
#include "io/tables/parquet.h"
#include "io/weights/model_file.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct DataCheckOptions {
  std::vector<std::string> paths;
  bool quick = false;
};

Fields FieldsOf(DataCheckOptions& options) {
  Fields fields;
  fields.Add("paths", options.paths, "downloaded files",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("quick", options.quick, "do not read Parquet files through: only their footers");
  return fields;
}

// What a file is for. In `uses`, {} stands for the file.
struct Purpose {
  std::string what;
  std::vector<std::string> uses;
};

Purpose GamesPurpose() {
  return {"positions of games for the decoder",
          {"kibitz decoder pretrain --data.parquet-dir {} --run-name my-decoder",
           "kibitz oracle variations {} --engine stockfish --nodes 10000 --out searches.parquet"}};
}

Purpose EvaluationsPurpose() {
  return {"evaluated positions for the policy", {"kibitz policy precompute {} --out data"}};
}

Purpose PgnPurpose() {
  return {"games in PGN",
          {"kibitz chess pgn {}", "kibitz oracle pgn {} --engine stockfish --out games.parquet",
           "kibitz oracle evals {} --engine stockfish --out evals.parquet"}};
}

Purpose Lc0RowsPurpose() {
  return {"lc0 training data",
          {"kibitz oracle lc0 {} --out games.parquet --policy-out visits.parquet"}};
}

bool HasAll(const std::set<std::string>& names, std::initializer_list<const char*> wanted) {
  return std::ranges::all_of(wanted, [&](const char* name) { return names.contains(name); });
}

// By the columns of a table or the keys of JSON lines.
Purpose TablePurpose(const io::FileReport& report) {
  std::set<std::string> names;
  for (const Json& part : report.parts) names.insert(part.value("name", ""));
  if (HasAll(names, {"fen", "evals"})) return EvaluationsPurpose();
  if (HasAll(names, {"fen", "line", "depth"})) return EvaluationsPurpose();
  if (HasAll(names, {"game_id", "ply", "fen", "played_move"})) return GamesPurpose();
  if (HasAll(names, {"fen", "variations", "mcts_action"})) {
    return {"searched positions for the decoder",
            {"kibitz decoder finetune --data.variation-parquet-dir {} --run-name my-decoder",
             "kibitz decoder dump --variations {} --row 0"}};
  }
  return {};
}

std::string FirstLine(const io::FileReport& report) {
  if (report.rows.empty() || !report.rows[0].is_string()) return "";
  return report.rows[0].get<std::string>();
}
bool ArePuzzles(std::string_view first_line) { return first_line.starts_with("PuzzleId,"); }
bool IsPgn(std::string_view first_line) { return first_line.starts_with("["); }

Purpose TextPurpose(const io::FileReport& report) {
  const std::string line = FirstLine(report);
  if (ArePuzzles(line)) {
    return {"Lichess puzzles", {"kibitz arena puzzles {} --player policy-small"}};
  }
  if (IsPgn(line)) return PgnPurpose();
  const size_t slashes = static_cast<size_t>(std::count(line.begin(), line.end(), '/'));
  if (slashes >= 7) {
    return {"positions as FEN or EPD",
            {"kibitz oracle evals {} --engine stockfish --out evals.parquet",
             "kibitz arena match policy-small random --openings {} --games 20"}};
  }
  return {};
}

// A network of any format; nothing when the file is none.
Purpose NetworkPurpose(const std::string& path, Json& facts) {
  try {
    const io::ModelFile model = io::ReadModel(path);
    facts["tensors"] = model.weights.tensors().size();
    if (model.format == io::ModelFormat::kLc0) {
      return {"an lc0 network",
              {"kibitz play {}", "kibitz oracle search --net {} --nodes 800",
               "kibitz oracle games --net {} --games 100 --out games.parquet"}};
    }
    return {"a network", {"kibitz play {}", "kibitz file convert {} --out model.safetensors"}};
  } catch (const Error&) {
    return {};
  }
}

Purpose PurposeOf(const io::FileReport& report, Json& facts) {
  if (report.format == "parquet" || report.format == "jsonl") return TablePurpose(report);
  if (report.format == "lc0 training data") return Lc0RowsPurpose();
  if (report.format == "tar" && report.facts.contains("first_file")) return Lc0RowsPurpose();
  if (report.format == "text") return TextPurpose(report);
  if (report.format == "pt" || report.format == "safetensors" || report.format == "bytes") {
    return NetworkPurpose(report.path, facts);
  }
  return {};
}

// Every cell of a Parquet file: a footer says nothing of the pages before it.
void ReadThrough(const io::FileReport& report) {
  const io::ParquetReader reader({report.path});
  std::vector<io::ColumnSpec> columns;
  for (const io::FileColumn& column : reader.Info(0).columns) {
    columns.push_back({column.name, column.type});
  }
  Progress progress("rows", reader.CountRows());
  io::ParquetScan scan = reader.Scan(columns);
  while (const io::Chunk* chunk = scan.Next()) {
    ThrowIfInterrupted();
    progress.Add(chunk->rows);
  }
  progress.Finish();
}

// Why a text is cut short; "" where nothing tells. A last line without an end is common in lists of
// positions that people write, so there it says nothing.
std::string CutShort(const io::FileReport& report) {
  if (report.format != "text" || report.end.empty()) return "";
  const std::string first = FirstLine(report);
  if (ArePuzzles(first) && report.end.back() != '\n') return "the last line is cut short";
  if (!IsPgn(first)) return "";
  const std::string_view end = Trim(report.end);
  const auto results = {"1-0", "0-1", "1/2-1/2", "*"};
  const bool ended =
      std::ranges::any_of(results, [&](const char* text) { return end.ends_with(text); });
  return ended ? "" : "the last game has no result";
}

// {"path", "whole", "format", "what", "uses", ...}; with "problem" where it is not whole.
Json Check(const std::string& path, bool quick) {
  Json checked = {{"path", path}};
  try {
    const uint64_t size = fs::is_regular_file(path) ? fs::file_size(path) : 0;
    Progress progress("bytes", size);
    const io::FileReport report =
        io::InspectFile(path, {.rows = 1, .on_bytes = [&](uint64_t bytes) {
                                 ThrowIfInterrupted();
                                 progress.Add(bytes - std::min(bytes, progress.done()));
                               }});
    if (report.format == "parquet" && !quick) ReadThrough(report);
    Json facts = report.facts;
    const Purpose purpose = PurposeOf(report, facts);
    const bool cut_row = facts.contains("cut_row_bytes");
    const bool broken = facts.value("broken_lines", uint64_t{0}) > 0;
    const std::string cut_short = CutShort(report);
    checked["whole"] = !cut_row && !broken && cut_short.empty();
    if (cut_row) checked["problem"] = "the last row is cut short";
    if (!cut_short.empty()) checked["problem"] = cut_short;
    if (broken) checked["problem"] = facts["first_problem"];
    checked["format"] = report.format;
    checked["what"] = purpose.what.empty() ? "nothing that a command here reads" : purpose.what;
    checked["uses"] = Json::array();
    for (const std::string& use : purpose.uses) {
      checked["uses"].push_back(fmt::format(fmt::runtime(use), path));
    }
    checked["facts"] = facts;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    checked["whole"] = false;
    checked["problem"] = error.message();
  }
  return checked;
}

void Print(const Json& checked) {
  const bool whole = checked["whole"];
  fmt::print("{}: {}\n", checked["path"].get<std::string>(), whole ? "whole" : "NOT WHOLE");
  if (checked.contains("problem")) {
    fmt::print(
        "  {}\n  'curl -C - -O URL' fetches the rest of a file that was cut short; else remove "
        "it and fetch it again\n",
        checked["problem"].get<std::string>());
  }
  if (!checked.contains("what")) return;
  fmt::print("  {}: {}\n", checked["format"].get<std::string>(),
             checked["what"].get<std::string>());
  for (const auto& [key, value] : checked["facts"].items()) {
    if (value.is_number()) fmt::print("  {:14} {}\n", key, value.dump());
  }
  for (const Json& use : checked["uses"]) fmt::print("  {}\n", use.get<std::string>());
}

int Run(const DataCheckOptions& options, const Context& context) {
  bool whole = true;
  for (const std::string& path : options.paths) {
    const Json checked = Check(path, options.quick);
    whole = whole && checked["whole"].get<bool>();
    if (context.json) {
      PrintJson(checked);
    } else {
      Print(checked);
    }
  }
  return whole ? 0 : 1;
}

}  // namespace

Command DataCheck() {
  return MakeCommand<DataCheckOptions>(
      {.name = "data check",
       .group = "Files",
       .summary = "say whether a download is whole, and what it can be used for",
       .details = "Reads every file through, checksums of gzip and zstd included, and names the "
                  "commands that\n"
                  "read it. Exit code 1 when a file is cut short or damaged. docs/DATA.md says "
                  "where data is.",
       .example = "kibitz data check examples/arena/puzzles.csv examples/decoder/games.parquet"},
      Run);
}

}  // namespace kibitz::cli
