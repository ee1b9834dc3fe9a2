// Searched positions: each row of each file is a candidate, each row group a unit.
#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "io/tables/parquet.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/source.h"
#include "students/decoder/data/table.h"

namespace kibitz::decoder {
namespace {

using io::ColumnType;

enum Columns : size_t { kFen, kVariations, kAction, kWin, kDraw, kLoss };

const std::vector<TableColumn>& SearchColumns() {
  static const std::vector<TableColumn> columns = {
      {{"fen", ColumnType::kText}},           {{"variations", ColumnType::kText}},
      {{"mcts_action", ColumnType::kText}},   {{"win", ColumnType::kDouble}, false},
      {{"draw", ColumnType::kDouble}, false}, {{"loss", ColumnType::kDouble}, false}};
  return columns;
}

SearchCells SearchCellsAt(const Table& table, const io::Chunk& chunk, size_t row) {
  return {.fen = table.Text(chunk, kFen, row).value_or(""),
          .variations = table.Text(chunk, kVariations, row).value_or(""),
          .mcts_action = table.Text(chunk, kAction, row).value_or(""),
          .wdl = WdlAt(table, chunk, kWin, row)};
}

// Calls use(row, search) for the rows of a row group until it returns false; a row that cannot be
// used comes as nothing.
template <typename Use>
void ForEachSearch(const io::ParquetReader& reader, const Table& table, io::RowGroupId group,
                   SkipCounter& skipped, Use use) {
  const io::ParquetInfo& info = reader.Info(group.file);
  SearchReader searches(info.path);
  auto row = static_cast<int64_t>(info.row_groups[group.group].first_row);
  io::ParquetScan scan = table.Scan(reader, {group});
  while (const io::Chunk* chunk = scan.Next()) {
    for (size_t i = 0; i < chunk->rows; ++i, ++row) {
      if (!use(row, searches.Read(SearchCellsAt(table, *chunk, i), row, skipped))) return;
    }
  }
}

class SearchUnit : public Unit {
 public:
  SearchUnit(const ThinkingOptions& options, size_t rows) : options_(options) {
    numbers_.reserve(rows);
  }

  void Add(std::optional<SearchRow> row) {
    const bool usable = row && HasThought(*row, options_);
    numbers_.push_back(usable ? static_cast<int32_t>(rows_.size()) : -1);
    if (!usable) return;
    row->nodes.shrink_to_fit();
    bytes_ += sizeof(SearchRow) + row->nodes.size() * sizeof(LineNode) +
              row->variations.capacity() * sizeof(SearchVariation);
    rows_.push_back(*std::move(row));
  }

  bool Usable(size_t candidate) const override { return numbers_[candidate] >= 0; }
  Sequence Make(size_t candidate, Rng& rng) const override {
    CHECK(Usable(candidate));
    return ThinkingSequence(rows_[static_cast<size_t>(numbers_[candidate])], options_, rng);
  }
  size_t Bytes() const override { return bytes_ + numbers_.size() * sizeof(int32_t); }

 private:
  ThinkingOptions options_;
  std::vector<int32_t> numbers_;  // By candidate, into rows_; -1 for one that cannot be used.
  std::vector<SearchRow> rows_;
  size_t bytes_ = 0;
};

class SearchSource : public Source {
 public:
  SearchSource(const std::vector<std::string>& paths, const ThinkingOptions& options)
      : Source("variations"), reader_(paths), options_(options) {
    for (size_t file = 0; file < reader_.files().size(); ++file) {
      tables_.emplace_back(reader_, file, SearchColumns(), skipped_at_open());
      const io::ParquetInfo& info = reader_.Info(file);
      if (info.rows == 0) {
        skipped_at_open().Add("empty file", {.file = info.path});
        continue;
      }
      CheckUsable(file);
      for (size_t group = 0; group < info.row_groups.size(); ++group) {
        if (info.row_groups[group].rows == 0) continue;
        groups_.push_back({file, group});
        AddUnit(info.row_groups[group].rows);
      }
    }
    CheckNotEmpty();
  }

 private:
  void CheckUsable(size_t file) const {
    SkipCounter skipped;
    bool usable = false;
    const io::ParquetInfo& info = reader_.Info(file);
    for (size_t group = 0; group < info.row_groups.size() && !usable; ++group) {
      ForEachSearch(reader_, tables_[file], {file, group}, skipped,
                    [&](int64_t /*row*/, const std::optional<SearchRow>& row) {
                      usable = row && HasThought(*row, options_);
                      return !usable;
                    });
    }
    if (!usable) {
      throw Error("{}: none of its {} rows can be used: {}", info.path, info.rows, skipped.Text());
    }
  }

  std::shared_ptr<const Unit> Decode(size_t unit, SkipCounter& skipped) const override {
    const io::RowGroupId group = groups_[unit];
    auto result = std::make_shared<SearchUnit>(options_, unit_sizes()[unit]);
    ForEachSearch(reader_, tables_[group.file], group, skipped,
                  [&](int64_t /*row*/, std::optional<SearchRow> row) {
                    result->Add(std::move(row));
                    return true;
                  });
    return result;
  }

  io::ParquetReader reader_;
  ThinkingOptions options_;
  std::vector<Table> tables_;           // By file.
  std::vector<io::RowGroupId> groups_;  // By unit.
};

}  // namespace

std::unique_ptr<Source> OpenSearches(const std::vector<std::string>& paths,
                                     const ThinkingOptions& options) {
  if (options.max_seq_len < kShortestThought) {
    throw Error::Usage("max_seq_len {} is too short to think: at least {} tokens are needed",
                       options.max_seq_len, kShortestThought);
  }
  return std::make_unique<SearchSource>(paths, options);
}

void ForEachSearch(const std::vector<std::string>& paths, SkipCounter& skipped,
                   const std::function<bool(SearchRow)>& use) {
  const io::ParquetReader reader(paths);
  bool more = true;
  for (size_t file = 0; file < reader.files().size() && more; ++file) {
    const Table table(reader, file, SearchColumns(), skipped);
    for (size_t group = 0; group < reader.Info(file).row_groups.size() && more; ++group) {
      ForEachSearch(reader, table, {file, group}, skipped,
                    [&](int64_t /*row*/, std::optional<SearchRow> row) {
                      if (row) more = use(*std::move(row));
                      return more;
                    });
    }
  }
}

uint64_t CountSearches(const std::vector<std::string>& paths) {
  return io::ParquetReader(paths).CountRows();
}

SearchRow ReadSearch(const std::string& path, uint64_t row) {
  const io::ParquetReader reader({path});
  SkipCounter skipped;
  const Table table(reader, 0, SearchColumns(), skipped);
  const io::ParquetInfo& info = reader.Info(0);
  if (reader.files().size() != 1) throw Error("{}: a folder; name one file", path);
  if (row >= info.rows) throw Error("{}: has no row {}, only 0 to {}", path, row, info.rows - 1);
  size_t group = 0;
  while (info.row_groups[group].first_row + info.row_groups[group].rows <= row) ++group;
  std::optional<SearchRow> result;
  SkipCounter row_skipped;
  SearchReader searches(info.path);
  io::ParquetScan scan = table.Scan(reader, {{0, group}});
  uint64_t first = info.row_groups[group].first_row;
  while (const io::Chunk* chunk = scan.Next()) {
    if (row < first + chunk->rows) {
      result = searches.Read(SearchCellsAt(table, *chunk, static_cast<size_t>(row - first)),
                             static_cast<int64_t>(row), row_skipped);
      break;
    }
    first += chunk->rows;
  }
  if (!result) throw Error("cannot use this row: {}", row_skipped.Text());
  return *std::move(result);
}

}  // namespace kibitz::decoder
