#include "io/tables/duckdb_query.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

constexpr size_t kMaxMessageBytes = 300;

// What to do about a message.
std::string_view RemedyFor(std::string_view message) {
  if (message.find("emory") != std::string_view::npos) {
    return "use fewer threads or allow more memory";
  }
  if (message.find("cast") != std::string_view::npos)
    return "its values do not fit the type that the column should have; write it with another";
  return "fetch or write the file again";
}

std::string Doubled(std::string_view text, char quote) {
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote) out += quote;
    out += c;
  }
  return out + quote;
}

void SetOption(duckdb_config config, const char* name, const std::string& value) {
  if (DuckDb().set_config(config, name, value.c_str()) != DuckDBSuccess) {
    throw Error("DuckDB {} does not know the setting {}; run 'make setup' for the right version",
                DuckDb().library_version(), name);
  }
}

// Whom the SQL function kibitz_use calls; its first argument is the address.
struct ChunkUser {
  const std::function<void(duckdb_data_chunk)>& use;
  std::mutex mutex = {};
  std::exception_ptr failure = {};  // Guarded by mutex.
};

// An exception must not pass through DuckDB.
void CallUser(duckdb_function_info info, duckdb_data_chunk chunk, duckdb_vector result) {
  const DuckDbApi& duckdb = DuckDb();
  const idx_t rows = duckdb.data_chunk_get_size(chunk);
  if (rows == 0) return;
  std::memset(duckdb.vector_get_data(result), 0, rows);
  const auto* addresses =
      static_cast<const int64_t*>(duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk, 0)));
  auto& user = *reinterpret_cast<ChunkUser*>(addresses[0]);
  try {
    user.use(chunk);
  } catch (...) {
    const std::lock_guard lock(user.mutex);
    user.failure = std::current_exception();
    duckdb.scalar_function_set_error(info, "stopped");
  }
}

// kibitz_use(BIGINT, ...) -> BOOLEAN. Volatile: it is called for every row; special handling: for
// nulls too.
void RegisterUse(duckdb_connection connection) {
  const DuckDbApi& duckdb = DuckDb();
  duckdb_scalar_function function = duckdb.create_scalar_function();
  const auto with_type = [&](duckdb_type kind, auto set) {
    duckdb_logical_type type = duckdb.create_logical_type(kind);
    set(function, type);
    duckdb.destroy_logical_type(&type);
  };
  duckdb.scalar_function_set_name(function, "kibitz_use");
  with_type(DUCKDB_TYPE_BIGINT, duckdb.scalar_function_add_parameter);
  with_type(DUCKDB_TYPE_ANY, duckdb.scalar_function_set_varargs);
  with_type(DUCKDB_TYPE_BOOLEAN, duckdb.scalar_function_set_return_type);
  duckdb.scalar_function_set_special_handling(function);
  duckdb.scalar_function_set_volatile(function);
  duckdb.scalar_function_set_function(function, CallUser);
  const bool good = duckdb.register_scalar_function(connection, function) == DuckDBSuccess;
  duckdb.destroy_scalar_function(&function);
  if (!good) throw Error("DuckDB does not take a function; run 'make setup' for the right version");
}

}  // namespace

std::string DuckMessage(const char* text) {
  if (text == nullptr) return "DuckDB gives no reason";
  std::string_view message = text;
  const size_t kind = message.find("Error: ");
  if (kind < 40) message.remove_prefix(kind + 7);
  // What follows an empty line is advice for people who write SQL.
  message = message.substr(0, message.find("\n\n"));
  std::string out;
  for (char c : Trim(message).substr(0, kMaxMessageBytes)) {
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
}

std::string SqlText(std::string_view text) { return Doubled(text, '\''); }
std::string SqlName(std::string_view name) { return Doubled(name, '"'); }

DuckDatabase::DuckDatabase(const Options& options) : stream_bytes_(options.stream_bytes) {
  const DuckDbApi& duckdb = DuckDb();
  duckdb_config config = nullptr;
  if (duckdb.create_config(&config) != DuckDBSuccess) throw Error("DuckDB cannot start");
  const std::shared_ptr<void> free_config(nullptr, [&](void*) { duckdb.destroy_config(&config); });
  SetOption(config, "threads", fmt::format("{}", options.threads));
  SetOption(config, "memory_limit", fmt::format("{}KiB", options.memory_bytes / 1024));
  SetOption(config, "preserve_insertion_order", "true");
  SetOption(config, "temp_directory", "");
  // A file must never make the library fetch or run anything.
  SetOption(config, "autoinstall_known_extensions", "false");
  SetOption(config, "autoload_known_extensions", "false");
  char* message = nullptr;
  if (duckdb.open_ext(nullptr, &handle_, config, &message) != DuckDBSuccess) {
    const std::string reason = DuckMessage(message);
    duckdb.free(message);
    throw Error("DuckDB cannot start: {}", reason);
  }
}

DuckDatabase::~DuckDatabase() { DuckDb().close(&handle_); }

DuckConnection::DuckConnection(std::shared_ptr<DuckDatabase> database)
    : database_(std::move(database)) {
  if (DuckDb().connect(database_->handle(), &handle_) != DuckDBSuccess) {
    throw Error("DuckDB cannot connect to its own memory");
  }
  // Settings that a database cannot be opened with.
  Execute(fmt::format("SET streaming_buffer_size = '{}KiB'; SET parquet_metadata_cache = true",
                      database_->stream_bytes() / 1024),
          "DuckDB");
}

// While an exception passes, DuckDB closes a connection without stopping its query, whose tasks
// then go on in freed memory. So another thread closes it, where no exception passes.
DuckConnection::~DuckConnection() {
  if (std::uncaught_exceptions() == 0) {
    DuckDb().disconnect(&handle_);
  } else {
    std::thread([this] { DuckDb().disconnect(&handle_); }).join();
  }
}

void DuckConnection::Execute(const std::string& sql, const std::string& place) {
  duckdb_result result = {};
  const bool good = DuckDb().query(handle_, sql.c_str(), &result) == DuckDBSuccess;
  const std::string message = good ? "" : DuckMessage(DuckDb().result_error(&result));
  DuckDb().destroy_result(&result);
  if (!good) throw Error("{}: {}", place, message);
}

DuckQuery::DuckQuery(std::shared_ptr<DuckDatabase> database, const std::string& sql,
                     std::string place)
    : place_(std::move(place)), connection_(std::move(database)) {
  const DuckDbApi& duckdb = DuckDb();
  if (duckdb.prepare(connection_.handle(), sql.c_str(), &statement_) != DuckDBSuccess) {
    Fail(duckdb.prepare_error(statement_));
  }
  if (duckdb.pending_prepared_streaming(statement_, &pending_) != DuckDBSuccess) {
    Fail(duckdb.pending_error(pending_));
  }
}

DuckQuery::~DuckQuery() { Release(); }

bool DuckQuery::Next() {
  const DuckDbApi& duckdb = DuckDb();
  if (!running_) {
    running_ = true;
    if (duckdb.execute_pending(pending_, &result_) != DuckDBSuccess) {
      Fail(duckdb.result_error(&result_));
    }
  }
  if (chunk_ != nullptr) duckdb.destroy_data_chunk(&chunk_);
  chunk_ = duckdb.fetch_chunk(result_);
  if (chunk_ == nullptr) {
    const char* message = duckdb.result_error(&result_);
    if (message != nullptr) Fail(message);
    return false;
  }
  return true;
}

void DuckQuery::Fail(const char* message) {
  const std::string reason = DuckMessage(message);
  Release();
  throw Error("{}: {}; {}", place_, reason, RemedyFor(reason));
}

void DuckQuery::Release() {
  const DuckDbApi& duckdb = DuckDb();
  if (chunk_ != nullptr) duckdb.destroy_data_chunk(&chunk_);
  if (running_) duckdb.destroy_result(&result_);
  running_ = false;
  if (pending_ != nullptr) duckdb.destroy_pending(&pending_);
  if (statement_ != nullptr) duckdb.destroy_prepare(&statement_);
}

void UseChunks(const std::shared_ptr<DuckDatabase>& database, const std::string& columns,
               const std::string& from, const std::string& place,
               const std::function<void(duckdb_data_chunk)>& use) {
  std::call_once(database->with_use(), [&] { RegisterUse(DuckConnection(database).handle()); });
  ChunkUser user{use};
  const std::string sql = fmt::format("SELECT bool_or(kibitz_use({}::BIGINT, {})) FROM {}",
                                      reinterpret_cast<int64_t>(&user), columns, from);
  try {
    DuckQuery query(database, sql, place);
    while (query.Next()) {
    }
  } catch (...) {
    if (!user.failure) throw;
  }
  if (user.failure) std::rethrow_exception(user.failure);
}

std::vector<std::vector<std::string>> TextRows(const std::shared_ptr<DuckDatabase>& database,
                                               const std::string& sql, size_t columns,
                                               const std::string& place) {
  const DuckDbApi& duckdb = DuckDb();
  std::vector<std::vector<std::string>> rows;
  DuckQuery query(database, sql, place);
  while (query.Next()) {
    const size_t first = rows.size();
    const idx_t count = duckdb.data_chunk_get_size(query.chunk());
    rows.resize(first + count, std::vector<std::string>(columns));
    for (size_t column = 0; column < columns; ++column) {
      duckdb_vector vector = duckdb.data_chunk_get_vector(query.chunk(), column);
      const auto* cells = static_cast<const DuckDbText*>(duckdb.vector_get_data(vector));
      const uint64_t* valid = duckdb.vector_get_validity(vector);
      for (size_t row = 0; row < count; ++row) {
        if (valid != nullptr && (valid[row / 64] >> (row % 64) & 1) == 0) continue;
        rows[first + row][column].assign(cells[row].data(), cells[row].length);
      }
    }
  }
  return rows;
}

}  // namespace kibitz::io
