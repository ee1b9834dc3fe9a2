// Reads and writes Parquet files as typed columns. Reads one file, a list, or a folder: only the
// requested columns, chunk by chunk in file order for any number of threads. Row groups can be read
// in any order, which is how training shuffles.
//
//   ParquetReader reader({"evals/"});
//   ParquetScan scan = reader.Scan({{"fen", ColumnType::kText}, {"cp", ColumnType::kInt64}});
//   while (const Chunk* chunk = scan.Next()) {
//     for (size_t row = 0; row < chunk->rows; ++row) {
//       Use(chunk->columns[0].texts[row], chunk->columns[1].ints[row], chunk->IsNull(1, row));
//     }
//   }
//
//   ParquetWriter writer("out.parquet", {{"fen", ColumnType::kText}, {"cp", ColumnType::kInt64}});
//   writer.SetText(0, fen);
//   writer.SetInt(1, 35);      // A cell that is not set is null.
//   writer.EndRow();
//   writer.Finish();           // Without it no file appears.
//
// DuckDB does the work; its library is loaded when the first reader or writer is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::io {

// The type that a column is read as. Files hold many widths (INT16, UINT32, FLOAT, ...); integers
// widen to kInt64 or kDouble, floats to kDouble, and any type can be read as kText: lists and
// structs as DuckDB prints them, {'a': 1} and [x, y].
enum class ColumnType { kBool, kInt64, kDouble, kText };
// "bool", "int64", "double", "text"
std::string_view NameOf(ColumnType type);

struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kText;
};

// Cells of one column. Only the vector of its type is filled; a null has 0, false or "" there.
struct Column {
  ColumnType type = ColumnType::kText;
  std::vector<uint8_t> nulls;  // 1 where the cell is null.
  std::vector<uint8_t> bools;
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  std::vector<std::string_view> texts;  // UTF-8, borrowed from who made the chunk.
};

struct Chunk {
  size_t rows = 0;
  std::vector<Column> columns;  // As asked for, in that order.

  bool IsNull(size_t column, size_t row) const { return columns[column].nulls[row] != 0; }
};

struct FileColumn {
  std::string name;
  std::string file_type;  // As DuckDB names it: SMALLINT, VARCHAR, STRUCT(a INTEGER)[].
  ColumnType type;        // The narrowest that holds every value.
};

struct RowGroup {
  uint64_t first_row = 0;  // Within the file.
  uint64_t rows = 0;
};

// The contents of a file's footer.
struct ParquetInfo {
  std::string path;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  std::string created_by;
  std::vector<FileColumn> columns;
  std::vector<RowGroup> row_groups;
  std::map<std::string, std::string> metadata;
};

struct RowGroupId {
  size_t file = 0;   // Index into ParquetReader::files().
  size_t group = 0;  // Index into ParquetInfo::row_groups.
};

struct ParquetOptions {
  int threads = 0;                            // DuckDB's, with the caller's; 0: all cores.
  int scans = 1;                              // That run at the same time: they share the memory.
  uint64_t memory_bytes = uint64_t{1} << 30;  // Limit of DuckDB's memory; reading needs far less.
};

// The files behind a list of names: a file is itself, a folder all *.parquet below it, sorted.
// Throws Error when a name is neither or a folder has none.
std::vector<std::string> FindParquetFiles(const std::vector<std::string>& paths);

class ParquetScan {
 public:
  ParquetScan(ParquetScan&&) noexcept;
  ParquetScan& operator=(ParquetScan&&) noexcept;
  ~ParquetScan();

  // The next rows (about 2048), or nullptr at the end. Valid until the next call. Throws Error with
  // the file's name.
  const Chunk* Next();

 private:
  friend class ParquetReader;
  class Impl;
  explicit ParquetScan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Several scans may run at the same time, each on one thread of its own.
class ParquetReader {
 public:
  // Each path is a file or a folder. Footers are read when needed.
  explicit ParquetReader(const std::vector<std::string>& paths, ParquetOptions options = {});
  ~ParquetReader();
  ParquetReader(ParquetReader&&) noexcept;
  ParquetReader& operator=(ParquetReader&&) noexcept;

  const std::vector<std::string>& files() const;
  // Valid as long as the reader. Throws Error when the file is damaged.
  const ParquetInfo& Info(size_t file) const;
  uint64_t CountRows() const;
  std::vector<RowGroupId> RowGroups() const;

  // All rows of all files. Throws Error for a missing column, naming the nearest known one, and for
  // a column of another type.
  ParquetScan Scan(std::vector<ColumnSpec> columns) const;
  // The rows of these row groups, one group after the other; later ones are read ahead.
  ParquetScan ScanRowGroups(std::vector<ColumnSpec> columns,
                            const std::vector<RowGroupId>& order) const;
  // The same rows, each chunk given to `use` as soon as it is decoded, which saves a copy of its
  // texts. For a reader of one thread: the caller's decodes.
  void ForEachChunk(const std::vector<ColumnSpec>& columns, const std::vector<RowGroupId>& order,
                    const std::function<void(const Chunk&)>& use) const;

 private:
  friend class ParquetScan;
  class Impl;
  std::shared_ptr<Impl> impl_;  // Shared with the scans.
};

struct ParquetWriterOptions {
  // Rounded up to whole vectors of 2048 rows.
  uint64_t row_group_rows = 122880;
  // Fewer rows where they are long: as the first 2048 rows tell. DuckDB holds a group in memory,
  // uncompressed.
  uint64_t row_group_bytes = 128ULL << 20;
  int compression_level = 3;                         // Of zstd, 1 to 22.
  std::map<std::string, std::string> metadata = {};  // Kept in the footer.
};

// Fills "<path>.tmp" and renames it in Finish(). Compression runs on a thread of its own; memory
// holds about one row group, and batches of 2048 rows that wait for it.
class ParquetWriter {
 public:
  // Throws Error when the folder cannot be written. Column names are distinct.
  ParquetWriter(const std::string& path, std::vector<ColumnSpec> columns,
                const ParquetWriterOptions& options = {});
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  // Cells of the current row; the type must be the column's.
  void SetBool(size_t column, bool value);
  void SetInt(size_t column, int64_t value);
  void SetDouble(size_t column, double value);
  // Throws Error when it is not UTF-8.
  void SetText(size_t column, std::string_view value);
  void EndRow();
  // Whole rows at once; the columns have the types declared.
  void Append(const Chunk& chunk);

  uint64_t rows() const;
  // Flushes to disk and puts the file in place. Call once.
  void Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kibitz::io
