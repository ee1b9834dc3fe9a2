// ParquetWriter: the caller fills batches of rows, a thread runs DuckDB's COPY, whose source is a
// table function that takes the batches. So memory holds a few batches and DuckDB's row group,
// however long the file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "io/tables/duckdb_query.h"
#include "io/tables/parquet.h"

namespace kibitz::io {
namespace {

constexpr size_t kBatchRows = 2048;  // What DuckDB's vectors hold.
constexpr size_t kMaxWaiting = 16;   // Batches.

// Length of the UTF-8 sequence at the start of `text`, 0 when it is none: no overlong forms, no
// surrogates, nothing above U+10FFFF.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t word = 0;
    if (text.size() >= 8) {
      std::memcpy(&word, text.data(), 8);
      if ((word & 0x8080808080808080) == 0) {
        text.remove_prefix(8);
        continue;
      }
    }
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

struct TextSpan {
  size_t offset = 0;
  size_t length = 0;
};

// Rows buffered for DuckDB; owns its texts.
struct BatchColumn {
  std::array<uint8_t, kBatchRows> nulls;
  std::array<int64_t, kBatchRows> numbers;  // Ints, the bits of doubles, or bools.
  std::vector<TextSpan> spans;
  std::string bytes;
};

struct RowBatch {
  explicit RowBatch(size_t count) : columns(count) {
    for (BatchColumn& column : columns) column.nulls.fill(1);
  }
  size_t rows = 0;
  std::vector<BatchColumn> columns;
};

// Batches between the caller and DuckDB's thread.
class Channel {
 public:
  // False when the other side has given up.
  bool Push(std::unique_ptr<RowBatch> batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < kMaxWaiting || taker_gone_; });
    if (taker_gone_) return false;
    waiting_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }

  void End(bool abandoned) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    abandoned_ = abandoned;
    changed_.notify_all();
  }

  // Empty at the end; `abandoned` tells that the rows are not all there.
  std::unique_ptr<RowBatch> Pop(bool& abandoned) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
    abandoned = abandoned_;
    if (abandoned_ || waiting_.empty()) return nullptr;
    auto batch = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    return batch;
  }

  void TakerGone() {
    const std::lock_guard lock(mutex_);
    taker_gone_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<RowBatch>> waiting_;  // All guarded by mutex_.
  bool ended_ = false;
  bool abandoned_ = false;
  bool taker_gone_ = false;
};

// What the table function sees.
struct Source {
  std::vector<ColumnSpec> columns;
  Channel channel;
};

duckdb_type DuckType(ColumnType type) {
  switch (type) {
    case ColumnType::kBool:
      return DUCKDB_TYPE_BOOLEAN;
    case ColumnType::kInt64:
      return DUCKDB_TYPE_BIGINT;
    case ColumnType::kDouble:
      return DUCKDB_TYPE_DOUBLE;
    case ColumnType::kText:
      return DUCKDB_TYPE_VARCHAR;
  }
  return DUCKDB_TYPE_VARCHAR;
}

void BindSource(duckdb_bind_info info) {
  const DuckDbApi& duckdb = DuckDb();
  const auto* source = static_cast<const Source*>(duckdb.bind_get_extra_info(info));
  for (const ColumnSpec& column : source->columns) {
    duckdb_logical_type type = duckdb.create_logical_type(DuckType(column.type));
    duckdb.bind_add_result_column(info, column.name.c_str(), type);
    duckdb.destroy_logical_type(&type);
  }
}

void InitSource(duckdb_init_info info) { DuckDb().init_set_max_threads(info, 1); }

void CopyOut(const BatchColumn& column, ColumnType type, size_t rows, duckdb_vector vector) {
  const DuckDbApi& duckdb = DuckDb();
  void* cells = duckdb.vector_get_data(vector);
  if (type == ColumnType::kText) {
    for (size_t row = 0; row < rows; ++row) {
      if (column.nulls[row] != 0) continue;
      const TextSpan& span = column.spans[row];
      duckdb.vector_assign_string_element_len(vector, row, column.bytes.data() + span.offset,
                                              span.length);
    }
  } else if (type == ColumnType::kBool) {
    for (size_t row = 0; row < rows; ++row) {
      static_cast<uint8_t*>(cells)[row] = column.numbers[row] != 0 ? 1 : 0;
    }
  } else {
    std::memcpy(cells, column.numbers.data(), rows * sizeof(int64_t));
  }
  duckdb.vector_ensure_validity_writable(vector);
  uint64_t* valid = duckdb.vector_get_validity(vector);
  for (size_t row = 0; row < rows; ++row) {
    if (column.nulls[row] != 0) duckdb.validity_set_row_invalid(valid, row);
  }
}

void GiveRows(duckdb_function_info info, duckdb_data_chunk output) {
  const DuckDbApi& duckdb = DuckDb();
  auto* source = static_cast<Source*>(duckdb.function_get_extra_info(info));
  bool abandoned = false;
  const auto batch = source->channel.Pop(abandoned);
  if (abandoned) duckdb.function_set_error(info, "abandoned");
  duckdb.data_chunk_set_size(output, batch == nullptr ? 0 : batch->rows);
  if (batch == nullptr) return;
  for (size_t i = 0; i < batch->columns.size(); ++i) {
    CopyOut(batch->columns[i], source->columns[i].type, batch->rows,
            duckdb.data_chunk_get_vector(output, i));
  }
}

void RegisterSource(DuckConnection& connection, Source& source) {
  const DuckDbApi& duckdb = DuckDb();
  duckdb_table_function function = duckdb.create_table_function();
  duckdb.table_function_set_name(function, "kibitz_rows");
  duckdb.table_function_set_extra_info(function, &source, nullptr);
  duckdb.table_function_set_bind(function, BindSource);
  duckdb.table_function_set_init(function, InitSource);
  duckdb.table_function_set_function(function, GiveRows);
  const bool good = duckdb.register_table_function(connection.handle(), function) == DuckDBSuccess;
  duckdb.destroy_table_function(&function);
  if (!good) throw Error("DuckDB refuses the table function that Parquet is written from");
}

std::string CopyStatement(const std::string& path, const ParquetWriterOptions& options) {
  std::string metadata;
  for (const auto& [key, value] : options.metadata) {
    metadata += fmt::format("{}{}: {}", metadata.empty() ? "" : ", ", SqlName(key), SqlText(value));
  }
  return fmt::format(
      "COPY (SELECT * FROM kibitz_rows()) TO {} (FORMAT parquet, COMPRESSION zstd, "
      "COMPRESSION_LEVEL {}, ROW_GROUP_SIZE {}, USE_TMP_FILE false{})",
      SqlText(path), options.compression_level, options.row_group_rows,
      metadata.empty() ? "" : fmt::format(", KV_METADATA {{{}}}", metadata));
}

void CheckColumns(const std::vector<ColumnSpec>& columns) {
  CHECK(!columns.empty());
  std::set<std::string> names;
  for (const ColumnSpec& column : columns) CHECK(names.insert(column.name).second);
}

}  // namespace

class ParquetWriter::Impl {
 public:
  Impl(const std::string& path, std::vector<ColumnSpec> columns,
       const ParquetWriterOptions& options)
      : path_(path),
        file_(path),
        source_{.columns = std::move(columns), .channel = {}},
        connection_(std::make_shared<DuckDatabase>(DuckDatabase::Options{})),
        options_(options),
        batch_(std::make_unique<RowBatch>(source_.columns.size())) {
    CheckColumns(source_.columns);
    RegisterSource(connection_, source_);
  }

  ~Impl() { Join(true); }

  void Set(size_t column, ColumnType type, int64_t bits) {
    CHECK(column < source_.columns.size() && source_.columns[column].type == type);
    BatchColumn& cells = batch_->columns[column];
    cells.nulls[batch_->rows] = 0;
    cells.numbers[batch_->rows] = bits;
  }

  void SetText(size_t column, std::string_view text) {
    CHECK(column < source_.columns.size() && source_.columns[column].type == ColumnType::kText);
    if (!IsUtf8(text)) {
      throw Error("{}: column {}, row {}: {} is not UTF-8", path_, source_.columns[column].name,
                  rows_, Quoted(text));
    }
    BatchColumn& cells = batch_->columns[column];
    cells.nulls[batch_->rows] = 0;
    cells.spans.resize(kBatchRows);
    cells.spans[batch_->rows] = {cells.bytes.size(), text.size()};
    cells.bytes += text;
  }

  void EndRow() {
    ++rows_;
    if (++batch_->rows == kBatchRows) Flush();
  }

  uint64_t rows() const { return rows_; }
  const std::vector<ColumnSpec>& columns() const { return source_.columns; }

  void Finish() {
    CHECK(!finished_);
    finished_ = true;
    if (batch_->rows > 0 || !started_) Flush();
    Join(false);
    ThrowIfFailed();
    file_.Commit();
  }

 private:
  void Copy(const std::string& sql) {
    try {
      connection_.Execute(sql, path_);
    } catch (const Error& error) {
      failure_ = error.message();
    }
    source_.channel.TakerGone();
  }

  // When the first batch shows how long rows are.
  void Start() {
    started_ = true;
    uint64_t bytes = 0;
    for (const BatchColumn& column : batch_->columns) {
      bytes += column.bytes.size() + batch_->rows * sizeof(int64_t);
    }
    const uint64_t batches = options_.row_group_bytes / std::max<uint64_t>(1, bytes);
    options_.row_group_rows =
        std::min(options_.row_group_rows, std::max<uint64_t>(1, batches) * kBatchRows);
    copier_ = std::thread([this, sql = CopyStatement(file_.temporary(), options_)] { Copy(sql); });
  }

  void Flush() {
    if (!started_) Start();
    if (batch_->rows == 0) return;
    const bool taken = source_.channel.Push(std::move(batch_));
    batch_ = std::make_unique<RowBatch>(source_.columns.size());
    if (taken) return;
    Join(true);
    ThrowIfFailed();
  }

  void Join(bool abandon) {
    if (!copier_.joinable()) return;
    source_.channel.End(abandon);
    copier_.join();
  }

  // After Join.
  void ThrowIfFailed() const {
    if (!failure_.empty()) throw Error(failure_);
  }

  std::string path_;
  AtomicFile file_;  // DuckDB fills it by name; its lock, fsync and rename are ours.
  Source source_;
  DuckConnection connection_;
  ParquetWriterOptions options_;
  bool started_ = false;
  bool finished_ = false;
  std::unique_ptr<RowBatch> batch_;
  uint64_t rows_ = 0;
  std::string failure_;  // Set by the copier, read after Join.
  std::thread copier_;
};

ParquetWriter::ParquetWriter(const std::string& path, std::vector<ColumnSpec> columns,
                             const ParquetWriterOptions& options)
    : impl_(std::make_unique<Impl>(path, std::move(columns), options)) {}
ParquetWriter::~ParquetWriter() = default;

void ParquetWriter::SetBool(size_t column, bool value) {
  impl_->Set(column, ColumnType::kBool, value ? 1 : 0);
}
void ParquetWriter::SetInt(size_t column, int64_t value) {
  impl_->Set(column, ColumnType::kInt64, value);
}
void ParquetWriter::SetDouble(size_t column, double value) {
  impl_->Set(column, ColumnType::kDouble, std::bit_cast<int64_t>(value));
}
void ParquetWriter::SetText(size_t column, std::string_view value) {
  impl_->SetText(column, value);
}
void ParquetWriter::EndRow() { impl_->EndRow(); }

void ParquetWriter::Append(const Chunk& chunk) {
  const auto& columns = impl_->columns();
  CHECK(chunk.columns.size() == columns.size());
  for (size_t row = 0; row < chunk.rows; ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = chunk.columns[i];
      if (column.nulls[row] != 0) continue;
      switch (columns[i].type) {
        case ColumnType::kBool:
          SetBool(i, column.bools[row] != 0);
          break;
        case ColumnType::kInt64:
          SetInt(i, column.ints[row]);
          break;
        case ColumnType::kDouble:
          SetDouble(i, column.doubles[row]);
          break;
        case ColumnType::kText:
          SetText(i, column.texts[row]);
          break;
      }
    }
    EndRow();
  }
}

uint64_t ParquetWriter::rows() const { return impl_->rows(); }
void ParquetWriter::Finish() { impl_->Finish(); }

}  // namespace kibitz::io
