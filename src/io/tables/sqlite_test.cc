#include "io/tables/sqlite.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::GoldenPath;
using testing::MessageOf;
using testing::ReadWhole;
using testing::TempFolder;

TEST(Sqlite, ReadsTheMetadataOfAPack) {
  const std::string path = GoldenPath("twenty48/pack/metadata.db");
  SKIP_WITHOUT(path);
  SqliteDb db(path, SqliteDb::Mode::kRead);
  const auto tables = db.Tables();
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "runs");
  ASSERT_EQ(tables[0].columns.size(), 5U);
  EXPECT_EQ(tables[0].columns[1].name, "seed");
  EXPECT_EQ(tables[0].columns[1].type, "BIGINT");
  EXPECT_EQ(tables[0].sql.find("CREATE TABLE runs"), 0U);
  EXPECT_EQ(tables[1].name, "session");
  SqliteStatement runs = db.Prepare("SELECT id, steps FROM runs ORDER BY id");
  uint64_t rows = 0;
  while (runs.Step()) {
    ++rows;
    EXPECT_GT(runs.Int(1), 0);
  }
  EXPECT_EQ(rows, tables[0].rows);
  EXPECT_GT(rows, 0U);
}

TEST(Sqlite, RoundTrip) {
  const TempFolder folder;
  const std::string path = folder.File("a.db");
  {
    SqliteDb db(path, SqliteDb::Mode::kWrite);
    db.Transact([&] {
      db.Execute("CREATE TABLE \"odd \"\"name\" (i INTEGER, d REAL, t TEXT)");
      SqliteStatement insert = db.Prepare("INSERT INTO \"odd \"\"name\" VALUES (?, ?, ?)");
      for (int i = 0; i < 3; ++i) {
        insert.Bind(1, int64_t{1} << (20 * i));
        insert.Bind(2, 0.5 * i);
        insert.Bind(3, "x\ny");
        insert.Run();
      }
      insert.BindNull(1);
      insert.Bind(3, std::string_view("a\0b", 3));
      insert.Run();
    });
  }
  SqliteDb db(path, SqliteDb::Mode::kRead);
  ASSERT_EQ(db.Tables().size(), 1U);
  EXPECT_EQ(db.Tables()[0].name, "odd \"name");
  EXPECT_EQ(db.Tables()[0].rows, 4U);
  SqliteStatement rows = db.Prepare("SELECT * FROM " + SqliteName("odd \"name"));
  EXPECT_EQ(rows.columns(), 3);
  EXPECT_EQ(rows.ColumnName(2), "t");
  ASSERT_TRUE(rows.Step() && rows.Step() && rows.Step());
  EXPECT_EQ(rows.Int(0), int64_t{1} << 40);
  EXPECT_EQ(rows.Double(1), 1.0);
  EXPECT_EQ(rows.Text(2), "x\ny");
  ASSERT_TRUE(rows.Step());
  EXPECT_TRUE(rows.IsNull(0));
  EXPECT_EQ(rows.Text(2), std::string_view("a\0b", 3));
  EXPECT_FALSE(rows.Step());
}

TEST(Sqlite, FailedTransactionLeavesNothing) {
  const TempFolder folder;
  SqliteDb db(folder.File("a.db"), SqliteDb::Mode::kWrite);
  db.Execute("CREATE TABLE t (a INTEGER UNIQUE)");
  EXPECT_THROW(db.Transact([&] {
    db.Execute("INSERT INTO t VALUES (1)");
    db.Execute("INSERT INTO t VALUES (1)");
  }),
               Error);
  EXPECT_EQ(db.Tables()[0].rows, 0U);
  db.Transact([&] { db.Execute("INSERT INTO t VALUES (1)"); });
  EXPECT_EQ(db.Tables()[0].rows, 1U);
}

TEST(Sqlite, ErrorsNameFileAndSql) {
  const TempFolder folder;
  const std::string path = folder.File("a.db");
  {
    SqliteDb db(path, SqliteDb::Mode::kWrite);
    db.Execute("CREATE TABLE t (a); INSERT INTO t VALUES ('word'), (NULL)");
  }
  SqliteDb db(path, SqliteDb::Mode::kRead);
  EXPECT_EQ(MessageOf([&] { db.Prepare("SELECT b FROM t"); }),
            path + ": no such column: b, in 'SELECT b FROM t'");
  EXPECT_EQ(MessageOf([&] { db.Prepare("  "); }), path + ": no SQL statement in '  '");
  EXPECT_EQ(MessageOf([&] { db.Execute("INSERT INTO t VALUES (1)"); }),
            path + ": attempt to write a readonly database, in 'INSERT INTO t VALUES (1)'");
  EXPECT_EQ(MessageOf([&] { db.Prepare("INSERT INTO t VALUES (1)").Run(); }),
            path + ": attempt to write a readonly database, in 'INSERT INTO t VALUES (1)'");
  SqliteStatement rows = db.Prepare("SELECT a FROM t");
  ASSERT_TRUE(rows.Step());
  EXPECT_EQ(MessageOf([&] { rows.Int(0); }),
            path + ": column a holds 'word', expected a whole number, in 'SELECT a FROM t'");
  ASSERT_TRUE(rows.Step());
  EXPECT_EQ(MessageOf([&] { rows.Double(0); }),
            path + ": column a holds NULL, expected a number, in 'SELECT a FROM t'");
  EXPECT_EQ(MessageOf([&] { db.Prepare("SELECT ?").Bind(3, 1); }),
            path + ": binding a value: column index out of range, in 'SELECT ?'");
}

TEST(Sqlite, WhatIsNoDatabaseIsRefused) {
  const TempFolder folder;
  const std::string path = folder.File("x.db");
  std::ofstream(path) << "{\"this\": \"is JSON\"}";
  EXPECT_EQ(MessageOf([&] { SqliteDb(path, SqliteDb::Mode::kRead); }),
            path + ": is not a SQLite file: it must start with \"SQLite format 3\"");
  EXPECT_NE(
      MessageOf([&] { SqliteDb(folder.File("none"), SqliteDb::Mode::kRead); }).find("cannot read"),
      std::string::npos);
  EXPECT_NE(MessageOf([&] {
              SqliteDb(folder.File("no/x.db"), SqliteDb::Mode::kWrite);
            }).find("cannot open"),
            std::string::npos);
}

TEST(Sqlite, DamagedFilesGiveErrorsOrRows) {
  const std::string golden = GoldenPath("twenty48/pack/metadata.db");
  SKIP_WITHOUT(golden);
  const TempFolder folder;
  const std::string path = folder.File("x.db");
  const std::string whole = ReadWhole(golden);
  const auto read = [&] {
    SqliteDb db(path, SqliteDb::Mode::kRead);
    for (const SqliteTable& table : db.Tables()) {
      SqliteStatement rows = db.Prepare("SELECT * FROM " + SqliteName(table.name));
      while (rows.Step()) {
        for (int i = 0; i < rows.columns(); ++i) (void)rows.Text(i);
      }
    }
  };
  int noticed = 0;
  for (size_t size = 0; size < 4096; size += 13) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_NE(MessageOf(read), "") << size;
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    Rng rng({.seed = 4, .sample = i});
    std::string bytes = whole;
    char& byte = bytes[rng.Below(i < 500 ? 100 : bytes.size())];
    byte = static_cast<char>(byte ^ (1 << rng.Below(8)));
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string message = MessageOf(read);
    noticed += message.empty() ? 0 : 1;
    EXPECT_TRUE(message.empty() || message.find(path) != std::string::npos) << message;
  }
  EXPECT_GT(noticed, 50);
}

}  // namespace
}  // namespace kibitz::io
