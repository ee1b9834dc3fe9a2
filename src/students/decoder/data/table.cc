#include "students/decoder/data/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::decoder {

Table::Table(const io::ParquetReader& reader, size_t file, const std::vector<TableColumn>& columns,
             SkipCounter& skipped) {
  const io::ParquetInfo& info = reader.Info(file);
  std::vector<std::string> names;
  for (const io::FileColumn& column : info.columns) names.push_back(column.name);
  for (const TableColumn& column : columns) {
    const bool present = std::find(names.begin(), names.end(), column.spec.name) != names.end();
    if (!present && column.required) {
      const auto nearest = NearestName(column.spec.name, names);
      throw Error("{}: has no column \"{}\"{}; it has {}", info.path, column.spec.name,
                  nearest ? fmt::format(" (is it \"{}\"?)", *nearest) : "",
                  fmt::format("{}", fmt::join(names, ", ")));
    }
    places_.push_back(present ? std::optional(specs_.size()) : std::nullopt);
    if (present) specs_.push_back(column.spec);
  }
  for (const std::string& name : names) {
    const bool asked = std::any_of(columns.begin(), columns.end(),
                                   [&](const auto& column) { return column.spec.name == name; });
    if (!asked) skipped.Add("unknown column, not read", {.file = info.path, .detail = name});
  }
}

io::ParquetScan Table::Scan(const io::ParquetReader& reader,
                            const std::vector<io::RowGroupId>& groups) const {
  return reader.ScanRowGroups(specs_, groups);
}

bool Table::IsNull(const io::Chunk& chunk, size_t column, size_t row) const {
  return !places_[column] || chunk.IsNull(*places_[column], row);
}

std::optional<std::string_view> Table::Text(const io::Chunk& chunk, size_t column,
                                            size_t row) const {
  if (IsNull(chunk, column, row)) return std::nullopt;
  return chunk.columns[*places_[column]].texts[row];
}

std::optional<int64_t> Table::Int(const io::Chunk& chunk, size_t column, size_t row) const {
  if (IsNull(chunk, column, row)) return std::nullopt;
  return chunk.columns[*places_[column]].ints[row];
}

std::optional<double> Table::Double(const io::Chunk& chunk, size_t column, size_t row) const {
  if (IsNull(chunk, column, row)) return std::nullopt;
  return chunk.columns[*places_[column]].doubles[row];
}

WdlCells WdlAt(const Table& table, const io::Chunk& chunk, size_t win, size_t row) {
  return {.win = table.Double(chunk, win, row),
          .draw = table.Double(chunk, win + 1, row),
          .loss = table.Double(chunk, win + 2, row)};
}

}  // namespace kibitz::decoder
