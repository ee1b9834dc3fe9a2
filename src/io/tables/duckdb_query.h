// RAII for DuckDB: a database in memory, and a query whose rows arrive chunk by chunk. Internal to
// io; others use parquet.h.
//
//   auto database = std::make_shared<DuckDatabase>(DuckDatabase::Options{.threads = 2});
//   DuckQuery query(database, "SELECT 1", "place for messages");
//   while (query.Next()) ... query.chunk() ...
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/tables/duckdb_api.h"

namespace kibitz::io {

// DuckDB's message on one line, without the name of its exception class.
std::string DuckMessage(const char* text);

// 'it''s' and "a ""b""": safe inside SQL.
std::string SqlText(std::string_view text);
std::string SqlName(std::string_view name);

class DuckDatabase {
 public:
  struct Options {
    int threads = 1;
    uint64_t memory_bytes = uint64_t{1} << 30;
    uint64_t stream_bytes = uint64_t{1} << 26;  // Read-ahead of one query.
  };

  explicit DuckDatabase(const Options& options);
  ~DuckDatabase();
  DuckDatabase(const DuckDatabase&) = delete;
  DuckDatabase& operator=(const DuckDatabase&) = delete;

  duckdb_database handle() const { return handle_; }
  uint64_t stream_bytes() const { return stream_bytes_; }
  std::once_flag& with_use() { return with_use_; }

 private:
  duckdb_database handle_ = nullptr;
  uint64_t stream_bytes_;
  std::once_flag with_use_;  // Whether it has the function that UseChunks needs.
};

class DuckConnection {
 public:
  explicit DuckConnection(std::shared_ptr<DuckDatabase> database);
  ~DuckConnection();
  DuckConnection(const DuckConnection&) = delete;
  DuckConnection& operator=(const DuckConnection&) = delete;

  duckdb_connection handle() const { return handle_; }
  // Runs to the end; throws Error "place: message".
  void Execute(const std::string& sql, const std::string& place);

 private:
  std::shared_ptr<DuckDatabase> database_;
  duckdb_connection handle_ = nullptr;
};

// One query on a connection of its own. The constructor starts it: the database's other threads
// work ahead, up to Options::stream_bytes, until the rows are asked for.
class DuckQuery {
 public:
  // `place` begins every message.
  DuckQuery(std::shared_ptr<DuckDatabase> database, const std::string& sql, std::string place);
  ~DuckQuery();
  DuckQuery(const DuckQuery&) = delete;
  DuckQuery& operator=(const DuckQuery&) = delete;

  // False after the last chunk. Throws Error.
  bool Next();
  // Valid until the next call of Next().
  duckdb_data_chunk chunk() const { return chunk_; }

 private:
  [[noreturn]] void Fail(const char* message);
  void Release();

  std::string place_;
  DuckConnection connection_;
  duckdb_prepared_statement statement_ = nullptr;
  duckdb_pending_result pending_ = nullptr;
  duckdb_result result_ = {};
  bool running_ = false;
  duckdb_data_chunk chunk_ = nullptr;
};

// Runs a query over `columns`, a list in SQL, `from` a table, and gives each chunk to `use` on the
// thread that made it. DuckQuery instead copies all texts before it gives them away. The chunk's
// first column is not the caller's: theirs follow. With one thread in the database that is the
// caller's, and chunks come in order. Throws Error, and what `use` throws.
void UseChunks(const std::shared_ptr<DuckDatabase>& database, const std::string& columns,
               const std::string& from, const std::string& place,
               const std::function<void(duckdb_data_chunk)>& use);

// All rows of a small result whose columns are all VARCHAR; null becomes "".
std::vector<std::vector<std::string>> TextRows(const std::shared_ptr<DuckDatabase>& database,
                                               const std::string& sql, size_t columns,
                                               const std::string& place);

}  // namespace kibitz::io
