#include "io/tables/sqlite.h"

#include <sqlite3.h>

#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr int kMaxCellBytes = 64 << 20;
constexpr int kBusyMilliseconds = 5000;

void CheckMagic(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) throw Error::System("cannot read " + path);
  std::string head(kMagic.size(), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (static_cast<size_t>(in.gcount()) != head.size() || head != kMagic) {
    throw Error("{}: is not a SQLite file: it must start with \"SQLite format 3\"", path);
  }
}

[[noreturn]] void Fail(sqlite3* database, const std::string& path, std::string_view sql) {
  throw Error("{}: {}, in {}", path, sqlite3_errmsg(database), Quoted(sql, 200));
}

void RunAll(sqlite3* database, const std::string& path, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    Fail(database, path, sql);
  }
}

}  // namespace

SqliteStatement::SqliteStatement(std::shared_ptr<sqlite3> database, std::string path,
                                 const std::string& sql)
    : database_(std::move(database)),
      path_(std::move(path)),
      statement_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.c_str(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) Fail(database_.get(), path_, sql);
  if (statement == nullptr) throw Error("{}: no SQL statement in {}", path_, Quoted(sql));
  statement_.reset(statement);
}

void SqliteStatement::CheckCode(int code, std::string_view doing) const {
  if (code == SQLITE_OK) return;
  throw Error("{}: {}: {}, in {}", path_, doing, sqlite3_errmsg(database_.get()),
              Quoted(sqlite3_sql(statement_.get()), 200));
}

void SqliteStatement::Bind(int parameter, int64_t value) {
  CheckCode(sqlite3_bind_int64(statement_.get(), parameter, value), "binding a value");
}
void SqliteStatement::Bind(int parameter, double value) {
  CheckCode(sqlite3_bind_double(statement_.get(), parameter, value), "binding a value");
}
void SqliteStatement::Bind(int parameter, std::string_view value) {
  CheckCode(sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(),
                                SQLITE_TRANSIENT, SQLITE_UTF8),
            "binding a value");
}
void SqliteStatement::BindNull(int parameter) {
  CheckCode(sqlite3_bind_null(statement_.get(), parameter), "binding a value");
}

bool SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    throw Error("{}: {}, in {}", path_, sqlite3_errmsg(database_.get()),
                Quoted(sqlite3_sql(statement_.get()), 200));
  }
  return false;
}

void SqliteStatement::Run() {
  while (Step()) {
  }
  CheckCode(sqlite3_reset(statement_.get()), "running");
}

int SqliteStatement::columns() const { return sqlite3_column_count(statement_.get()); }

std::string SqliteStatement::ColumnName(int column) const {
  CHECK(column >= 0 && column < columns());
  return sqlite3_column_name(statement_.get(), column);
}

void SqliteStatement::CheckCell(int column, bool fits, std::string_view expected) const {
  if (fits) return;
  throw Error("{}: column {} holds {}, expected {}, in {}", path_, ColumnName(column),
              IsNull(column) ? "NULL" : Quoted(Text(column)), expected,
              Quoted(sqlite3_sql(statement_.get()), 200));
}

bool SqliteStatement::IsNull(int column) const {
  CHECK(column >= 0 && column < columns());
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

int64_t SqliteStatement::Int(int column) const {
  CHECK(column >= 0 && column < columns());
  const int type = sqlite3_column_type(statement_.get(), column);
  CheckCell(column, type == SQLITE_INTEGER, "a whole number");
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteStatement::Double(int column) const {
  CHECK(column >= 0 && column < columns());
  const int type = sqlite3_column_type(statement_.get(), column);
  CheckCell(column, type == SQLITE_INTEGER || type == SQLITE_FLOAT, "a number");
  return sqlite3_column_double(statement_.get(), column);
}

std::string_view SqliteStatement::Text(int column) const {
  CHECK(column >= 0 && column < columns());
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

SqliteDb::SqliteDb(const std::string& path, Mode mode) : path_(path) {
  if (mode == Mode::kRead) CheckMagic(path);
  const int flags =
      mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  database_.reset(database, sqlite3_close_v2);
  if (code != SQLITE_OK) {
    throw Error("cannot open {}: {}", path,
                database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database));
  }
  // A schema from elsewhere must not run functions, and a cell must not take all memory.
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMaxCellBytes);
  sqlite3_busy_timeout(database, kBusyMilliseconds);
}

SqliteStatement SqliteDb::Prepare(const std::string& sql) {
  return SqliteStatement(database_, path_, sql);
}

void SqliteDb::Execute(const std::string& sql) { RunAll(database_.get(), path_, sql); }

void SqliteDb::Transact(const std::function<void()>& changes) {
  Execute("BEGIN IMMEDIATE");
  try {
    changes();
    Execute("COMMIT");
  } catch (...) {
    // Fails when the error itself has rolled back already, which is as good.
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

std::vector<SqliteTable> SqliteDb::Tables() {
  std::vector<SqliteTable> tables;
  SqliteStatement names = Prepare(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "
      "ESCAPE '~' ORDER BY name");
  while (names.Step()) {
    SqliteTable& table = tables.emplace_back();
    table.name = names.Text(0);
    table.sql = names.Text(1);
    SqliteStatement columns = Prepare("SELECT name, type FROM pragma_table_info(?)");
    columns.Bind(1, std::string_view(table.name));
    while (columns.Step()) {
      table.columns.push_back({std::string(columns.Text(0)), std::string(columns.Text(1))});
    }
    SqliteStatement count = Prepare("SELECT count(*) FROM " + SqliteName(table.name));
    if (count.Step()) table.rows = static_cast<uint64_t>(count.Int(0));
  }
  return tables;
}

std::string SqliteName(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace kibitz::io
