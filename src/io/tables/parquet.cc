#include "io/tables/parquet.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "io/tables/duckdb_query.h"

namespace kibitz::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRemedy = "fetch or write the file again";
constexpr uint64_t kSmallestMemory = uint64_t{64} << 20;
constexpr uint64_t kMaxStreamBytes = uint64_t{64} << 20;

// Magic at both ends and a footer that fits: what must hold before anything trusts the numbers in
// the file. Returns the file's size.
uint64_t CheckFrame(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error::System("cannot read " + path);
  struct stat info = {};
  std::array<char, 4> head{};
  std::array<char, 8> tail{};  // Length of the footer, magic.
  const bool regular = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  const bool whole = regular && info.st_size >= 12 &&
                     pread(descriptor, head.data(), head.size(), 0) == 4 &&
                     pread(descriptor, tail.data(), tail.size(), info.st_size - 8) == 8;
  close(descriptor);
  if (!regular) throw Error("{}: is not a regular file", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!whole) throw Error("{}: has {} bytes, too few for a Parquet file; {}", path, size, kRemedy);
  const std::string_view start(head.data(), 4);
  const std::string_view end(tail.data() + 4, 4);
  if (start == "PARE" || end == "PARE") throw Error("{}: is encrypted; decrypt it first", path);
  if (start != "PAR1") {
    throw Error("{}: starts with {}, a Parquet file with \"PAR1\"; {}", path, Quoted(start),
                kRemedy);
  }
  if (end != "PAR1") {
    throw Error("{}: ends with {}, a Parquet file with \"PAR1\"; it was cut off: {}", path,
                Quoted(end), kRemedy);
  }
  uint32_t footer = 0;
  std::memcpy(&footer, tail.data(), sizeof(footer));
  if (footer == 0 || footer > size - 12) {
    throw Error("{}: says its footer has {} bytes, in a file of {}; {}", path, footer, size,
                kRemedy);
  }
  return size;
}

// The file as DuckDB's table functions take it: quoted, and safe from being read as a pattern.
std::string SqlPath(const std::string& path) {
  std::string plain;
  for (char c : path) {
    if (c == '*' || c == '?' || c == '[') {
      plain += fmt::format("[{}]", c);
    } else {
      plain += c;
    }
  }
  return SqlText(plain);
}

ColumnType BestType(std::string_view file_type) {
  static const std::set<std::string_view> whole = {"TINYINT",  "SMALLINT",  "INTEGER",  "BIGINT",
                                                   "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"};
  if (whole.contains(file_type)) return ColumnType::kInt64;
  if (file_type == "BOOLEAN") return ColumnType::kBool;
  const bool decimal = file_type.starts_with("DECIMAL(") && !file_type.ends_with("]");
  if (file_type == "FLOAT" || file_type == "DOUBLE" || decimal) return ColumnType::kDouble;
  return ColumnType::kText;
}

bool CanBe(ColumnType held, ColumnType asked) {
  switch (asked) {
    case ColumnType::kText:
      return true;
    case ColumnType::kDouble:
      return held == ColumnType::kDouble || held == ColumnType::kInt64;
    case ColumnType::kInt64:
      return held == ColumnType::kInt64 || held == ColumnType::kBool;
    case ColumnType::kBool:
      return held == ColumnType::kBool;
  }
  return false;
}

std::string_view SqlType(ColumnType type) {
  switch (type) {
    case ColumnType::kBool:
      return "BOOLEAN";
    case ColumnType::kInt64:
      return "BIGINT";
    case ColumnType::kDouble:
      return "DOUBLE";
    case ColumnType::kText:
      return "VARCHAR";
  }
  return "";
}

const FileColumn& FindColumn(const ParquetInfo& info, const ColumnSpec& asked) {
  std::vector<std::string> names;
  for (const FileColumn& column : info.columns) {
    if (column.name == asked.name) return column;
    names.push_back(column.name);
  }
  const auto nearest = NearestName(asked.name, names);
  throw Error("{}: has no column {}; {}", info.path, Quoted(asked.name),
              nearest ? fmt::format("did you mean {}?", Quoted(*nearest))
                      : fmt::format("it has {}", fmt::join(names, ", ")));
}

// "CAST("fen" AS VARCHAR), ..."
std::string SelectList(const ParquetInfo& info, const std::vector<ColumnSpec>& columns) {
  std::vector<std::string> items;
  for (const ColumnSpec& asked : columns) {
    const FileColumn& column = FindColumn(info, asked);
    if (!CanBe(column.type, asked.type)) {
      throw Error("{}: column {} is {}, not {}; expected {}: write the column with that type",
                  info.path, Quoted(asked.name), column.file_type, NameOf(asked.type),
                  NameOf(asked.type));
    }
    items.push_back(fmt::format("CAST({} AS {})", SqlName(asked.name), SqlType(asked.type)));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

bool IsValid(const uint64_t* valid, size_t row) { return (valid[row / 64] >> (row % 64) & 1) != 0; }

template <typename T>
void CopyCells(const void* cells, size_t rows, const Column& column, std::vector<T>& out) {
  out.resize(rows);
  std::memcpy(out.data(), cells, rows * sizeof(T));
  for (size_t row = 0; row < rows; ++row) {
    if (column.nulls[row] != 0) out[row] = T{};
  }
}

void CopyTexts(const void* cells, size_t rows, Column& column) {
  const auto* texts = static_cast<const DuckDbText*>(cells);
  column.texts.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    column.texts[row] = column.nulls[row] != 0
                            ? std::string_view()
                            : std::string_view(texts[row].data(), texts[row].length);
  }
}

void CopyColumn(duckdb_vector vector, size_t rows, Column& column) {
  const uint64_t* valid = DuckDb().vector_get_validity(vector);
  column.nulls.assign(rows, 0);
  for (size_t row = 0; valid != nullptr && row < rows; ++row) {
    column.nulls[row] = IsValid(valid, row) ? 0 : 1;
  }
  const void* cells = DuckDb().vector_get_data(vector);
  switch (column.type) {
    case ColumnType::kBool:
      return CopyCells(cells, rows, column, column.bools);
    case ColumnType::kInt64:
      return CopyCells(cells, rows, column, column.ints);
    case ColumnType::kDouble:
      return CopyCells(cells, rows, column, column.doubles);
    case ColumnType::kText:
      return CopyTexts(cells, rows, column);
  }
}

// From column `first` of DuckDB's chunk on.
void FillChunk(duckdb_data_chunk from, size_t first, Chunk& chunk) {
  chunk.rows = DuckDb().data_chunk_get_size(from);
  for (size_t i = 0; i < chunk.columns.size(); ++i) {
    CopyColumn(DuckDb().data_chunk_get_vector(from, first + i), chunk.rows, chunk.columns[i]);
  }
}

Chunk EmptyChunk(const std::vector<ColumnSpec>& columns) {
  CHECK(!columns.empty());
  Chunk chunk;
  for (const ColumnSpec& column : columns) chunk.columns.emplace_back().type = column.type;
  return chunk;
}

// A file, or one row group of it.
struct Piece {
  size_t file = 0;
  std::optional<size_t> group;
};

// The library reports an error while streaming as an early end: count.
void CheckCount(const std::string& path, uint64_t given, uint64_t expected) {
  if (given == expected) return;
  throw Error("{}: gave {} rows, its footer counts {}; {}", path, given, expected, kRemedy);
}

}  // namespace

std::string_view NameOf(ColumnType type) {
  switch (type) {
    case ColumnType::kBool:
      return "bool";
    case ColumnType::kInt64:
      return "int64";
    case ColumnType::kDouble:
      return "double";
    case ColumnType::kText:
      return "text";
  }
  return "";
}

std::vector<std::string> FindParquetFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) throw Error("{}: there is no such file or folder", path);
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    fs::recursive_directory_iterator entries(path, error);
    if (error) throw Error("cannot read folder {}: {}", path, error.message());
    for (const auto& entry : entries) {
      if (entry.path().extension() == ".parquet" && entry.is_regular_file(error)) {
        found.push_back(entry.path().string());
      }
    }
    if (found.empty()) throw Error("{}: the folder has no *.parquet file", path);
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  if (files.empty()) throw Error("no Parquet file was named");
  return files;
}

class ParquetReader::Impl {
 public:
  Impl(std::vector<std::string> files, const ParquetOptions& options)
      : files_(std::move(files)),
        infos_(files_.size()),
        threads_(options.threads > 0 ? options.threads : HardwareThreads()),
        scans_(options.scans),
        memory_bytes_(std::max(options.memory_bytes, kSmallestMemory)) {}

  const std::vector<std::string>& files() const { return files_; }
  int threads() const { return threads_; }

  const ParquetInfo& Info(size_t file) {
    CHECK(file < files_.size());
    const std::lock_guard lock(mutex_);
    if (!infos_[file]) infos_[file] = ReadInfo(files_[file]);
    return *infos_[file];
  }

  std::unique_ptr<DuckQuery> Start(const Piece& piece, const std::vector<ColumnSpec>& columns) {
    const ParquetInfo& info = Info(piece.file);
    const Source source = SourceOf(piece);
    const std::string sql =
        fmt::format("SELECT {} FROM {}", SelectList(info, columns), source.from);
    return std::make_unique<DuckQuery>(database_, sql, source.place);
  }

  void ForEachChunk(const Piece& piece, const std::vector<ColumnSpec>& columns, Chunk& chunk,
                    const std::function<void(const Chunk&)>& use) {
    const ParquetInfo& info = Info(piece.file);
    const Source source = SourceOf(piece);
    uint64_t given = 0;
    UseChunks(database_, SelectList(info, columns), source.from, source.place,
              [&](duckdb_data_chunk decoded) {
                FillChunk(decoded, 1, chunk);
                given += chunk.rows;
                use(chunk);
              });
    CheckCount(info.path, given, RowsOf(piece));
  }

  std::vector<Piece> PiecesOf(const std::vector<RowGroupId>& order) {
    std::vector<Piece> pieces;
    for (const RowGroupId& id : order) {
      CHECK(id.file < files_.size() && id.group < Info(id.file).row_groups.size());
      pieces.push_back({id.file, id.group});
    }
    return pieces;
  }
  uint64_t RowsOf(const Piece& piece) {
    const ParquetInfo& info = Info(piece.file);
    return piece.group ? info.row_groups[*piece.group].rows : info.rows;
  }

 private:
  struct Source {
    std::string place;  // For messages.
    std::string from;   // In SQL.
  };
  Source SourceOf(const Piece& piece) {
    const ParquetInfo& info = Info(piece.file);
    if (!piece.group) return {info.path, fmt::format("read_parquet({})", SqlPath(info.path))};
    const RowGroup& group = info.row_groups[*piece.group];
    // DuckDB skips the other row groups by the bounds of this column.
    return {fmt::format("{}, row group {}", info.path, *piece.group),
            fmt::format("read_parquet({}, file_row_number = true) "
                        "WHERE file_row_number >= {} AND file_row_number < {}",
                        SqlPath(info.path), group.first_row, group.first_row + group.rows)};
  }
  // Made with the first file whose frame is good. Needs mutex_.
  std::shared_ptr<DuckDatabase> Database();
  ParquetInfo ReadInfo(const std::string& path);
  std::vector<std::vector<std::string>> Ask(const std::string& path, const std::string& what,
                                            size_t columns) {
    return TextRows(Database(), fmt::format(fmt::runtime(what), SqlPath(path)), columns, path);
  }

  std::vector<std::string> files_;
  std::mutex mutex_;
  std::vector<std::optional<ParquetInfo>> infos_;  // Guarded by mutex_ until filled.
  int threads_;
  int scans_;
  uint64_t memory_bytes_;
  std::shared_ptr<DuckDatabase> database_;  // Guarded by mutex_ until made.
};

std::shared_ptr<DuckDatabase> ParquetReader::Impl::Database() {
  if (!database_) {
    const auto queries = static_cast<uint64_t>(std::max(threads_ + 1, scans_));
    database_ = std::make_shared<DuckDatabase>(DuckDatabase::Options{
        .threads = threads_,
        .memory_bytes = memory_bytes_,
        .stream_bytes = std::min(kMaxStreamBytes, memory_bytes_ / (2 * queries))});
  }
  return database_;
}

ParquetInfo ParquetReader::Impl::ReadInfo(const std::string& path) {
  ParquetInfo info;
  info.path = path;
  info.bytes = CheckFrame(path);
  const auto count = [&](const std::string& text) {
    const auto value = ParseInt(text);
    if (!value || *value < 0) {
      throw Error("{}: the footer counts {} rows; {}", path, Quoted(text), kRemedy);
    }
    return static_cast<uint64_t>(*value);
  };
  for (const auto& row : Ask(path,
                             "SELECT CAST(num_rows AS VARCHAR), created_by "
                             "FROM parquet_file_metadata({})",
                             2)) {
    info.rows = count(row[0]);
    info.created_by = row[1];
  }
  for (const auto& row : Ask(path,
                             "SELECT column_name, column_type FROM "
                             "(DESCRIBE SELECT * FROM read_parquet({}))",
                             2)) {
    info.columns.push_back({row[0], row[1], BestType(row[1])});
  }
  uint64_t rows = 0;
  for (const auto& row : Ask(path,
                             "SELECT CAST(any_value(row_group_num_rows) AS VARCHAR) FROM "
                             "parquet_metadata({}) GROUP BY row_group_id ORDER BY row_group_id",
                             1)) {
    info.row_groups.push_back({rows, count(row[0])});
    rows += info.row_groups.back().rows;
  }
  if (rows != info.rows) {
    throw Error("{}: the footer counts {} rows, its row groups {}; {}", path, info.rows, rows,
                kRemedy);
  }
  for (const auto& row :
       Ask(path,
           "SELECT decode(key), decode(value) FROM parquet_kv_metadata({}) "
           "WHERE try(decode(key)) IS NOT NULL AND try(decode(value)) IS NOT NULL",
           2)) {
    info.metadata[row[0]] = row[1];
  }
  return info;
}

class ParquetScan::Impl {
 public:
  Impl(std::shared_ptr<ParquetReader::Impl> reader, std::vector<ColumnSpec> columns,
       std::vector<Piece> pieces, size_t ahead)
      : reader_(std::move(reader)),
        columns_(std::move(columns)),
        pieces_(std::move(pieces)),
        ahead_(ahead),
        chunk_(EmptyChunk(columns_)) {
    StartAhead();
  }

  const Chunk* Next() {
    while (!running_.empty()) {
      DuckQuery& query = *running_.front();
      if (query.Next()) {
        FillChunk(query.chunk(), 0, chunk_);
        given_ += chunk_.rows;
        if (chunk_.rows > 0) return &chunk_;
        continue;
      }
      FinishPiece();
      StartAhead();
    }
    return nullptr;
  }

 private:
  void StartAhead() {
    while (started_ < pieces_.size() && running_.size() < ahead_) {
      running_.push_back(reader_->Start(pieces_[started_], columns_));
      ++started_;
    }
  }

  void FinishPiece() {
    const Piece& piece = pieces_[finished_];
    CheckCount(reader_->files()[piece.file], given_, reader_->RowsOf(piece));
    given_ = 0;
    ++finished_;
    running_.pop_front();
  }

  std::shared_ptr<ParquetReader::Impl> reader_;
  std::vector<ColumnSpec> columns_;
  std::vector<Piece> pieces_;
  size_t ahead_;  // Queries that run at the same time.
  size_t started_ = 0;
  size_t finished_ = 0;
  uint64_t given_ = 0;                              // Rows of the current piece.
  std::deque<std::unique_ptr<DuckQuery>> running_;  // Of pieces_[finished_] and those after it.
  Chunk chunk_;
};

ParquetScan::ParquetScan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParquetScan::ParquetScan(ParquetScan&&) noexcept = default;
ParquetScan& ParquetScan::operator=(ParquetScan&&) noexcept = default;
ParquetScan::~ParquetScan() = default;

const Chunk* ParquetScan::Next() { return impl_->Next(); }

ParquetReader::ParquetReader(const std::vector<std::string>& paths, ParquetOptions options)
    : impl_(std::make_shared<Impl>(FindParquetFiles(paths), options)) {}
ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;
ParquetReader& ParquetReader::operator=(ParquetReader&&) noexcept = default;

const std::vector<std::string>& ParquetReader::files() const { return impl_->files(); }
const ParquetInfo& ParquetReader::Info(size_t file) const { return impl_->Info(file); }

uint64_t ParquetReader::CountRows() const {
  uint64_t rows = 0;
  for (size_t file = 0; file < files().size(); ++file) rows += Info(file).rows;
  return rows;
}

std::vector<RowGroupId> ParquetReader::RowGroups() const {
  std::vector<RowGroupId> all;
  for (size_t file = 0; file < files().size(); ++file) {
    for (size_t group = 0; group < Info(file).row_groups.size(); ++group) {
      all.push_back({file, group});
    }
  }
  return all;
}

ParquetScan ParquetReader::Scan(std::vector<ColumnSpec> columns) const {
  std::vector<Piece> pieces;
  for (size_t file = 0; file < files().size(); ++file) pieces.push_back({file, std::nullopt});
  // DuckDB spreads one file over all threads; one more file hides its start.
  return ParquetScan(
      std::make_unique<ParquetScan::Impl>(impl_, std::move(columns), std::move(pieces), 2));
}

ParquetScan ParquetReader::ScanRowGroups(std::vector<ColumnSpec> columns,
                                         const std::vector<RowGroupId>& order) const {
  const auto ahead = static_cast<size_t>(impl_->threads()) + 1;
  return ParquetScan(std::make_unique<ParquetScan::Impl>(impl_, std::move(columns),
                                                         impl_->PiecesOf(order), ahead));
}

void ParquetReader::ForEachChunk(const std::vector<ColumnSpec>& columns,
                                 const std::vector<RowGroupId>& order,
                                 const std::function<void(const Chunk&)>& use) const {
  CHECK(impl_->threads() == 1);
  Chunk chunk = EmptyChunk(columns);
  for (const Piece& piece : impl_->PiecesOf(order)) {
    impl_->ForEachChunk(piece, columns, chunk, use);
  }
}

}  // namespace kibitz::io
