#include "oracles/records/join.h"

#include <functional>
#include <unordered_set>

#include "base/error.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/parquet.h"

namespace kibitz::oracles {
namespace {

using io::ColumnType;
using io::JsonKind;
using io::JsonValue;

const std::vector<io::ColumnSpec>& GameColumns() {
  static const std::vector<io::ColumnSpec> columns = {
      {"game_id", ColumnType::kText},    {"ply", ColumnType::kInt64},
      {"fen", ColumnType::kText},        {"played_move", ColumnType::kText},
      {"best_move", ColumnType::kText},  {"win", ColumnType::kDouble},
      {"draw", ColumnType::kDouble},     {"loss", ColumnType::kDouble},
      {"played_q", ColumnType::kDouble}, {"played_d", ColumnType::kDouble}};
  return columns;
}

const std::vector<io::ColumnSpec>& SearchColumns() {
  static const std::vector<io::ColumnSpec> columns = {
      {"fen", ColumnType::kText},         {"variations", ColumnType::kText},
      {"mcts_action", ColumnType::kText}, {"win", ColumnType::kDouble},
      {"draw", ColumnType::kDouble},      {"loss", ColumnType::kDouble}};
  return columns;
}

const std::vector<io::ColumnSpec>& EvalColumns() {
  static const std::vector<io::ColumnSpec> columns = {
      {"fen", ColumnType::kText},     {"line", ColumnType::kText}, {"depth", ColumnType::kInt64},
      {"knodes", ColumnType::kInt64}, {"cp", ColumnType::kInt64},  {"mate", ColumnType::kInt64}};
  return columns;
}

// A table with the options in its metadata.
class Table {
 public:
  Table(const PartStore& parts, const std::vector<io::ColumnSpec>& columns)
      : columns_(columns),
        writer_(parts.out(), columns, {.metadata = {{"kibitz", parts.options().dump()}}}) {}

  // Fields of the object that are columns; missing ones stay null.
  void Set(JsonValue object) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const JsonValue value = object[columns_[i].name];
      if (value.kind() == JsonKind::kMissing || value.kind() == JsonKind::kNull) continue;
      if (columns_[i].type == ColumnType::kText) writer_.SetText(i, value.String());
      if (columns_[i].type == ColumnType::kInt64) writer_.SetInt(i, value.Int());
      if (columns_[i].type == ColumnType::kDouble) writer_.SetDouble(i, value.Double());
    }
  }
  io::ParquetWriter& writer() { return writer_; }

 private:
  const std::vector<io::ColumnSpec>& columns_;
  io::ParquetWriter writer_;
};

// Equal for games with the same start and the same moves.
uint64_t GameKey(JsonValue unit) {
  std::string text;
  for (JsonValue row : unit["rows"].Items()) {
    if (text.empty()) text = row["fen"].String();
    text += fmt::format(" {} {}", row["ply"].Int(), row["played_move"].String());
  }
  return std::hash<std::string>{}(text);
}

}  // namespace

nlohmann::ordered_json Joined::ToJson() const {
  nlohmann::ordered_json json = {{"units", units}, {"rows", rows}, {"duplicates", duplicates}};
  if (!results.empty()) json["results"] = results;
  return json;
}

Joined JoinGames(const PartStore& parts) {
  Joined joined;
  Table table(parts, GameColumns());
  std::unordered_set<uint64_t> seen;
  parts.ForEachUnit([&](const io::JsonLine& line) {
    const JsonValue unit = line.root();
    if (!seen.insert(GameKey(unit)).second) {
      ++joined.duplicates;
      return;
    }
    ++joined.units;
    ++joined.results[std::string(unit["result"].String())];
    for (JsonValue row : unit["rows"].Items()) {
      table.Set(row);
      table.writer().EndRow();
      ++joined.rows;
    }
  });
  table.writer().Finish();
  return joined;
}

Joined JoinSearches(const PartStore& parts) {
  Joined joined;
  Table table(parts, SearchColumns());
  parts.ForEachUnit([&](const io::JsonLine& line) {
    table.Set(line.root());
    table.writer().EndRow();
    ++joined.units;
    ++joined.rows;
  });
  table.writer().Finish();
  return joined;
}

namespace {

Joined JoinEvalsToTable(const PartStore& parts) {
  Joined joined;
  Table table(parts, EvalColumns());
  parts.ForEachUnit([&](const io::JsonLine& line) {
    ++joined.units;
    for (JsonValue eval : line.root()["evals"].Items()) {
      for (JsonValue pv : eval["pvs"].Items()) {
        table.Set(line.root());
        table.Set(eval);
        table.Set(pv);
        table.writer().EndRow();
        ++joined.rows;
      }
    }
  });
  table.writer().Finish();
  return joined;
}

Joined JoinEvalsToLines(const PartStore& parts) {
  Joined joined;
  io::ByteSink sink(parts.out());
  parts.ForEachUnit([&](const io::JsonLine& line) {
    sink.Write(std::string(line.text()) + "\n");
    ++joined.units;
    for (JsonValue eval : line.root()["evals"].Items()) {
      for ([[maybe_unused]] JsonValue pv : eval["pvs"].Items()) ++joined.rows;
    }
  });
  sink.Commit();
  return joined;
}

}  // namespace

Joined JoinEvals(const PartStore& parts) {
  return parts.out().ends_with(".parquet") ? JoinEvalsToTable(parts) : JoinEvalsToLines(parts);
}

void CheckParquetName(const std::string& out) {
  if (!out.ends_with(".parquet"))
    throw Error::Usage("--out {}: its name must end with .parquet", out);
}

void CheckEvalsName(const std::string& out) {
  for (const char* ending : {".parquet", ".jsonl", ".jsonl.zst", ".jsonl.gz"}) {
    if (out.ends_with(ending)) return;
  }
  throw Error::Usage("--out {}: its name must end with .parquet, .jsonl, .jsonl.zst or .jsonl.gz",
                     out);
}

}  // namespace kibitz::oracles
