// Parquet columns by name, some of which a file may lack: what both kinds of source read through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/skip_counter.h"
#include "io/tables/parquet.h"
#include "students/decoder/data/records.h"

namespace kibitz::decoder {

struct TableColumn {
  io::ColumnSpec spec;
  bool required = true;
};

// The columns of one file. A cell of a column that the file lacks is null.
class Table {
 public:
  // Throws Error for a required column that the file lacks, naming the nearest one. Columns that
  // are in the file but not asked for are counted in `skipped`.
  Table(const io::ParquetReader& reader, size_t file, const std::vector<TableColumn>& columns,
        SkipCounter& skipped);

  // Makes a scan of these row groups; its chunks are read by the functions below, which take the
  // number of a column in the list given.
  io::ParquetScan Scan(const io::ParquetReader& reader,
                       const std::vector<io::RowGroupId>& groups) const;

  std::optional<std::string_view> Text(const io::Chunk& chunk, size_t column, size_t row) const;
  std::optional<int64_t> Int(const io::Chunk& chunk, size_t column, size_t row) const;
  std::optional<double> Double(const io::Chunk& chunk, size_t column, size_t row) const;

 private:
  bool IsNull(const io::Chunk& chunk, size_t column, size_t row) const;

  std::vector<io::ColumnSpec> specs_;          // Those the file has.
  std::vector<std::optional<size_t>> places_;  // Where each column asked for lies among them.
};

// The columns win, draw and loss, which stand in this order from `win` on.
WdlCells WdlAt(const Table& table, const io::Chunk& chunk, size_t win, size_t row);

}  // namespace kibitz::decoder
