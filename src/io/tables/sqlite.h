// RAII for SQLite: run metadata beside larger arrays.
//
//   SqliteDb db("pack/metadata.db", SqliteDb::Mode::kRead);
//   SqliteStatement rows = db.Prepare("SELECT id, seed FROM runs WHERE max_score > ?");
//   rows.Bind(1, 1000);
//   while (rows.Step()) Use(rows.Int(0), rows.Text(1));
//
// For writing, changes go into a transaction that is undone when the function throws:
//   SqliteDb db("new.db", SqliteDb::Mode::kWrite);
//   db.Transact([&] { db.Execute("CREATE TABLE t (a INTEGER)"); ... });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace kibitz::io {

// A prepared statement; keeps its database open. All failures are Errors that name file and SQL.
class SqliteStatement {
 public:
  // Parameters count from 1, as in SQL. Texts are copied.
  void Bind(int parameter, int64_t value);
  void Bind(int parameter, int value) { Bind(parameter, int64_t{value}); }
  void Bind(int parameter, double value);
  void Bind(int parameter, std::string_view value);
  void BindNull(int parameter);

  // Moves to the next row; false after the last.
  bool Step();
  // For a statement without rows, such as INSERT: runs it and makes it ready for the next values.
  void Run();

  int columns() const;
  std::string ColumnName(int column) const;

  // Cells of the current row, from column 0. Int and Double throw Error on anything that is not
  // such a number; Text takes numbers too. Views live until the next Step.
  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Double(int column) const;
  std::string_view Text(int column) const;

 private:
  friend class SqliteDb;
  SqliteStatement(std::shared_ptr<sqlite3> database, std::string path, const std::string& sql);
  void CheckCode(int code, std::string_view doing) const;
  void CheckCell(int column, bool fits, std::string_view expected) const;

  std::shared_ptr<sqlite3> database_;
  std::string path_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

struct SqliteColumn {
  std::string name;
  std::string type;  // As declared; may be "".
};

struct SqliteTable {
  std::string name;
  std::string sql;  // The statement that made it.
  std::vector<SqliteColumn> columns;
  uint64_t rows = 0;
};

class SqliteDb {
 public:
  // kRead neither creates nor changes anything; kWrite creates the file when it is not there.
  enum class Mode { kRead, kWrite };

  SqliteDb(const std::string& path, Mode mode);

  SqliteStatement Prepare(const std::string& sql);
  // Any number of statements without parameters; rows are ignored.
  void Execute(const std::string& sql);
  // In one transaction.
  void Transact(const std::function<void()>& changes);

  // By name, without SQLite's own. Counts every row.
  std::vector<SqliteTable> Tables();

 private:
  std::string path_;
  std::shared_ptr<sqlite3> database_;
};

// A name for use in SQL, in double quotes.
std::string SqliteName(std::string_view name);

}  // namespace kibitz::io
