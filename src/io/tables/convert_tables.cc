#include "io/tables/convert_tables.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/json_tree.h"
#include "io/tables/jsonl.h"
#include "io/tables/parquet.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kRowsBetweenReports = 1 << 14;

void Report(const RowProgress& progress, uint64_t rows) {
  if (progress && rows % kRowsBetweenReports == 0) progress(rows);
}

// Whether the line holds a row; counts it as skipped when not, or throws.
bool IsRow(const JsonLine& line, const TableConversionOptions& options,
           TableConversion& conversion) {
  const bool row = line.ok() && line.root().kind() == JsonKind::kObject;
  if (row) return true;
  const std::string problem = line.ok() ? line.Place() + ": no object" : line.problem();
  if (!options.skip_bad) throw Error("{}; --skip-bad leaves such lines out", problem);
  if (conversion.skipped++ == 0) conversion.first_problem = problem;
  return false;
}

// The narrowest type that holds everything seen in one column.
class ColumnGuess {
 public:
  void See(JsonKind kind) {
    if (kind == JsonKind::kNull) return;
    ColumnType type = ColumnType::kText;
    if (kind == JsonKind::kBool) type = ColumnType::kBool;
    if (kind == JsonKind::kInt) type = ColumnType::kInt64;
    if (kind == JsonKind::kDouble) type = ColumnType::kDouble;
    const bool numbers = (type_ == ColumnType::kInt64 && type == ColumnType::kDouble) ||
                         (type_ == ColumnType::kDouble && type == ColumnType::kInt64);
    if (!seen_) {
      type_ = type;
    } else if (numbers) {
      type_ = ColumnType::kDouble;
    } else if (type != type_) {
      type_ = ColumnType::kText;
    }
    seen_ = true;
  }
  ColumnType type() const { return seen_ ? type_ : ColumnType::kText; }

 private:
  ColumnType type_ = ColumnType::kText;
  bool seen_ = false;
};

struct GuessedColumns {
  std::vector<ColumnSpec> columns;  // In order of first appearance.
  std::map<std::string, size_t, std::less<>> index;
};

GuessedColumns GuessColumns(const std::string& path, const TableConversionOptions& options) {
  GuessedColumns guessed;
  std::vector<ColumnGuess> guesses;
  TableConversion ignored;
  JsonLines lines(path);
  while (const JsonLine* line = lines.Next()) {
    if (!IsRow(*line, options, ignored)) continue;
    for (const JsonValue field : line->root().Fields()) {
      auto at = guessed.index.find(field.key());
      if (at == guessed.index.end()) {
        if (guesses.size() == Limits().columns) {
          throw Error("{}: more than {} different keys, each of which would be a column; {}",
                      line->Place(), guesses.size(), AllowHint("columns", 2 * guesses.size()));
        }
        at = guessed.index.emplace(std::string(field.key()), guesses.size()).first;
        guessed.columns.push_back({at->first, ColumnType::kText});
        guesses.emplace_back();
      }
      guesses[at->second].See(field.kind());
    }
  }
  if (guesses.empty()) throw Error("{}: no line is a JSON object: nothing to convert", path);
  for (size_t i = 0; i < guesses.size(); ++i) guessed.columns[i].type = guesses[i].type();
  return guessed;
}

void SetCell(ParquetWriter& writer, size_t column, ColumnType type, const JsonValue& value) {
  if (value.kind() == JsonKind::kNull) return;
  switch (type) {
    case ColumnType::kBool:
      return writer.SetBool(column, value.Bool());
    case ColumnType::kInt64:
      return writer.SetInt(column, value.Int());
    case ColumnType::kDouble:
      return writer.SetDouble(column, value.Double());
    case ColumnType::kText:
      if (value.kind() == JsonKind::kString) return writer.SetText(column, value.String());
      return writer.SetText(column, ToTree(value).dump());
  }
}

Json CellOf(const Column& column, size_t row) {
  switch (column.type) {
    case ColumnType::kBool:
      return column.bools[row] != 0;
    case ColumnType::kInt64:
      return column.ints[row];
    case ColumnType::kDouble:
      return column.doubles[row];
    case ColumnType::kText:
      return column.texts[row];
  }
  return {};
}

}  // namespace

TableConversion ConvertParquetToJsonl(const std::string& from, const std::string& to,
                                      const TableConversionOptions& options) {
  const ParquetReader reader({from});
  std::vector<ColumnSpec> columns;
  for (const FileColumn& column : reader.Info(0).columns) {
    columns.push_back({column.name, column.type});
  }
  ByteSink sink(to);
  TableConversion conversion;
  ParquetScan scan = reader.Scan(columns);
  while (const Chunk* chunk = scan.Next()) {
    for (size_t row = 0; row < chunk->rows; ++row) {
      Json object = Json::object();
      for (size_t i = 0; i < columns.size(); ++i) {
        if (!chunk->IsNull(i, row)) object[columns[i].name] = CellOf(chunk->columns[i], row);
      }
      sink.Write(object.dump());
      sink.Write("\n");
      Report(options.progress, ++conversion.rows);
    }
  }
  sink.Commit();
  return conversion;
}

TableConversion ConvertJsonlToParquet(const std::string& from, const std::string& to,
                                      const TableConversionOptions& options) {
  const GuessedColumns guessed = GuessColumns(from, options);
  ParquetWriter writer(to, guessed.columns);
  TableConversion conversion;
  JsonLines lines(from);
  while (const JsonLine* line = lines.Next()) {
    if (!IsRow(*line, options, conversion)) continue;
    for (const JsonValue field : line->root().Fields()) {
      const size_t column = guessed.index.find(field.key())->second;
      SetCell(writer, column, guessed.columns[column].type, field);
    }
    writer.EndRow();
    Report(options.progress, ++conversion.rows);
  }
  writer.Finish();
  return conversion;
}

}  // namespace kibitz::io
