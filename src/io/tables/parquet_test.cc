#include "io/tables/parquet.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include "base/error.h"
#include "io/tables/duckdb_query.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::GoldenPath;
using testing::MessageOf;
using testing::TempFolder;

const std::vector<ColumnSpec> kEvalColumns = {
    {"fen", ColumnType::kText},     {"line", ColumnType::kText}, {"depth", ColumnType::kInt64},
    {"knodes", ColumnType::kInt64}, {"cp", ColumnType::kInt64},  {"mate", ColumnType::kInt64}};

// A cell for comparison: "null", or its text.
std::string Cell(const Column& column, size_t row) {
  if (column.nulls[row] != 0) return "null";
  switch (column.type) {
    case ColumnType::kBool:
      return column.bools[row] != 0 ? "true" : "false";
    case ColumnType::kInt64:
      return std::to_string(column.ints[row]);
    case ColumnType::kDouble:
      return fmt::format("{}", column.doubles[row]);
    case ColumnType::kText:
      return std::string(column.texts[row]);
  }
  return "";
}

void AddRows(const Chunk& chunk, std::vector<std::string>& rows) {
  for (size_t row = 0; row < chunk.rows; ++row) {
    std::string& line = rows.emplace_back();
    for (const Column& column : chunk.columns) line += Cell(column, row) + "|";
  }
}

std::vector<std::string> Rows(ParquetScan scan) {
  std::vector<std::string> rows;
  while (const Chunk* chunk = scan.Next()) AddRows(*chunk, rows);
  return rows;
}

// Rows first, first + 1, ...: number = row, name = "row N" (null at multiples of 7).
void WriteNumbers(const std::string& path, int64_t first, int64_t count, uint64_t group_rows) {
  ParquetWriter writer(path, {{"number", ColumnType::kInt64}, {"name", ColumnType::kText}},
                       {.row_group_rows = group_rows});
  for (int64_t n = first; n < first + count; ++n) {
    writer.SetInt(0, n);
    if (n % 7 != 0) writer.SetText(1, fmt::format("row {} with more than twelve bytes", n));
    writer.EndRow();
  }
  writer.Finish();
}

std::vector<int64_t> Numbers(ParquetScan scan) {
  std::vector<int64_t> numbers;
  while (const Chunk* chunk = scan.Next()) {
    numbers.insert(numbers.end(), chunk->columns[0].ints.begin(), chunk->columns[0].ints.end());
  }
  return numbers;
}

const std::vector<ColumnSpec> kNumber = {{"number", ColumnType::kInt64}};

TEST(Parquet, RoundTripKeepsEveryTypeAndNull) {
  const TempFolder folder;
  const std::string path = folder.File("all.parquet");
  const std::vector<ColumnSpec> columns = {{"b", ColumnType::kBool},
                                           {"i", ColumnType::kInt64},
                                           {"d", ColumnType::kDouble},
                                           {"a \"quoted\" 'name'", ColumnType::kText}};
  {
    ParquetWriter writer(path, columns, {.metadata = {{"kibitz.kind", "it's a test"}}});
    writer.SetBool(0, true);
    writer.SetInt(1, std::numeric_limits<int64_t>::min());
    writer.SetDouble(2, 0.1);
    writer.SetText(3, "twelve bytes");
    writer.EndRow();
    writer.EndRow();  // All null.
    writer.SetBool(0, false);
    writer.SetInt(1, std::numeric_limits<int64_t>::max());
    writer.SetDouble(2, -std::numeric_limits<double>::infinity());
    writer.SetText(3, "Grüße, 世界 𝄞: more than twelve bytes");
    writer.EndRow();
    writer.SetText(3, "");
    writer.EndRow();
    EXPECT_EQ(writer.rows(), 4U);
    writer.Finish();
  }
  const ParquetReader reader({path}, {.threads = 1});
  const std::vector<std::string> expected = {
      "true|-9223372036854775808|0.1|twelve bytes|", "null|null|null|null|",
      "false|9223372036854775807|-inf|Grüße, 世界 𝄞: more than twelve bytes|", "null|null|null||"};
  EXPECT_EQ(Rows(reader.Scan(columns)), expected);
  const ParquetInfo& info = reader.Info(0);
  EXPECT_EQ(info.rows, 4U);
  EXPECT_EQ(info.bytes, std::filesystem::file_size(path));
  ASSERT_EQ(info.columns.size(), 4U);
  EXPECT_EQ(info.columns[3].name, "a \"quoted\" 'name'");
  EXPECT_EQ(info.columns[1].file_type, "BIGINT");
  EXPECT_EQ(info.columns[2].type, ColumnType::kDouble);
  EXPECT_EQ(info.metadata.at("kibitz.kind"), "it's a test");
}

TEST(Parquet, RowsComeInFileOrderWithAnyNumberOfThreads) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 50'000, 4096);
  for (int threads : {1, 2, 5}) {
    const ParquetReader reader({path}, {.threads = threads});
    EXPECT_EQ(reader.CountRows(), 50'000U);
    EXPECT_EQ(reader.Info(0).row_groups.size(), 13U);
    ParquetScan scan = reader.Scan({{"name", ColumnType::kText}, {"number", ColumnType::kInt64}});
    int64_t next = 0;
    while (const Chunk* chunk = scan.Next()) {
      for (size_t row = 0; row < chunk->rows; ++row, ++next) {
        ASSERT_EQ(chunk->columns[1].ints[row], next);
        ASSERT_EQ(chunk->IsNull(0, row), next % 7 == 0);
        ASSERT_EQ(chunk->columns[0].texts[row],
                  next % 7 == 0 ? "" : fmt::format("row {} with more than twelve bytes", next));
      }
    }
    EXPECT_EQ(next, 50'000);
    EXPECT_EQ(scan.Next(), nullptr);
  }
}

TEST(Parquet, RowGroupsCanBeReadInAnyOrder) {
  const TempFolder folder;
  WriteNumbers(folder.File("a.parquet"), 0, 10'000, 2048);
  WriteNumbers(folder.File("b.parquet"), 10'000, 3'000, 2048);
  const ParquetReader reader({folder.path()}, {.threads = 2});
  std::vector<RowGroupId> order = reader.RowGroups();
  ASSERT_EQ(order.size(), 7U);
  std::reverse(order.begin(), order.end());
  std::vector<int64_t> expected;
  for (const RowGroupId& id : order) {
    const RowGroup& group = reader.Info(id.file).row_groups[id.group];
    for (uint64_t i = 0; i < group.rows; ++i) {
      expected.push_back(static_cast<int64_t>(10'000 * id.file + group.first_row + i));
    }
  }
  EXPECT_EQ(expected.size(), 13'000U);
  EXPECT_EQ(Numbers(reader.ScanRowGroups(kNumber, order)), expected);
  EXPECT_EQ(Numbers(reader.ScanRowGroups(kNumber, {{1, 1}})).front(), 12'048);
  EXPECT_TRUE(Numbers(reader.ScanRowGroups(kNumber, {})).empty());
}

// The rows of these groups as they are decoded.
std::vector<std::string> DecodedRows(const ParquetReader& reader,
                                     const std::vector<ColumnSpec>& columns,
                                     const std::vector<RowGroupId>& order) {
  std::vector<std::string> rows;
  reader.ForEachChunk(columns, order, [&](const Chunk& chunk) { AddRows(chunk, rows); });
  return rows;
}

TEST(Parquet, RowsGivenAsDecodedEqualThoseOfAScan) {
  const TempFolder folder;
  WriteNumbers(folder.File("a.parquet"), 0, 10'000, 2048);
  WriteNumbers(folder.File("b.parquet"), 10'000, 3'000, 2048);
  const ParquetReader reader({folder.path()}, {.threads = 1, .scans = 3});
  const std::vector<ColumnSpec> columns = {{"name", ColumnType::kText},
                                           {"number", ColumnType::kInt64},
                                           {"number", ColumnType::kDouble},
                                           {"number", ColumnType::kText}};
  std::vector<RowGroupId> order = reader.RowGroups();
  std::reverse(order.begin(), order.end());
  const auto expected = Rows(reader.ScanRowGroups(columns, order));
  ASSERT_EQ(expected.size(), 13'000U);
  std::vector<std::vector<std::string>> results(3);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (auto& result : results) {
    threads.emplace_back([&] { result = DecodedRows(reader, columns, order); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(Parquet, WhatTheUserOfRowsThrowsComesThrough) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 10'000, 122880);
  const ParquetReader reader({path}, {.threads = 1});
  int chunks = 0;
  const auto read = [&] {
    reader.ForEachChunk(kNumber, reader.RowGroups(), [&](const Chunk&) {
      if (++chunks == 2) throw Error("enough");
    });
  };
  EXPECT_EQ(MessageOf(read), "enough");
  EXPECT_EQ(chunks, 2);
  read();  // And the reader goes on.
  EXPECT_EQ(chunks, 7);
}

TEST(Parquet, ScansRunSideBySide) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 20'000, 2048);
  const ParquetReader reader({path}, {.threads = 2});
  std::vector<int64_t> all(20'000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::vector<std::vector<int64_t>> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (auto& result : results) {
    threads.emplace_back([&] { result = Numbers(reader.Scan(kNumber)); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, all);
}

TEST(Parquet, ScanMayBeLeftBeforeItsEndAndOutliveItsReader) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 30'000, 2048);
  std::optional<ParquetScan> scan;
  {
    const ParquetReader reader({path}, {.threads = 2});
    ParquetScan unused = reader.ScanRowGroups(kNumber, reader.RowGroups());
    scan = reader.Scan(kNumber);
  }
  const Chunk* chunk = scan->Next();
  ASSERT_NE(chunk, nullptr);
  EXPECT_EQ(chunk->columns[0].ints[0], 0);
}

// DuckDB does not stop a query whose connection ends while an exception passes: its tasks would go
// on in freed memory, and wait for ever for a lock there.
TEST(Parquet, ScanMayBeLeftByAnException) {
  const TempFolder folder;
  WriteNumbers(folder.File("a.parquet"), 0, 100'000, 2048);
  for (int i = 0; i < 40; ++i) {
    EXPECT_THROW(
        {
          const ParquetReader reader({folder.File("a.parquet")}, {.threads = 4});
          ParquetScan scan = reader.Scan({{"number", ColumnType::kInt64}});
          for (int chunk = 0; chunk < i % 4; ++chunk) scan.Next();
          throw Error("left");
        },
        Error);
  }
}

TEST(Parquet, AppendedChunksEqualTheirSource) {
  const TempFolder folder;
  WriteNumbers(folder.File("a.parquet"), 0, 5'000, 122880);
  const std::vector<ColumnSpec> columns = {{"number", ColumnType::kInt64},
                                           {"name", ColumnType::kText}};
  const ParquetReader source({folder.File("a.parquet")});
  {
    ParquetScan scan = source.Scan(columns);
    ParquetWriter writer(folder.File("b.parquet"), columns);
    while (const Chunk* chunk = scan.Next()) writer.Append(*chunk);
    writer.Finish();
  }
  const ParquetReader copy({folder.File("b.parquet")});
  EXPECT_EQ(Rows(copy.Scan(columns)), Rows(source.Scan(columns)));
}

TEST(Parquet, EmptyFileHasColumnsAndNoRows) {
  const TempFolder folder;
  WriteNumbers(folder.File("none.parquet"), 0, 0, 2048);
  const ParquetReader reader({folder.File("none.parquet")});
  EXPECT_EQ(reader.CountRows(), 0U);
  EXPECT_EQ(reader.Info(0).columns.size(), 2U);
  EXPECT_TRUE(Numbers(reader.Scan(kNumber)).empty());
}

TEST(Parquet, WholeNumbersOfAnyWidthReadAsAsked) {
  // The same rows with columns of different width.
  const auto files = testing::DataFiles("evals", ".parquet");
  if (files.size() < 2)
    GTEST_SKIP() << "no two Parquet files of evaluations; set KIBITZ_DATA to the folder of data";
  const std::string& narrow = files[1];
  const std::string& wide = files[0];
  const ParquetReader a({narrow});
  const ParquetReader b({wide});
  EXPECT_NE(a.Info(0).columns[2].file_type, b.Info(0).columns[2].file_type);
  const auto rows = Rows(a.Scan(kEvalColumns));
  EXPECT_EQ(rows.size(), a.CountRows());
  EXPECT_EQ(rows, Rows(b.Scan(kEvalColumns)));
  // Both in one list, and a number as text and as a double.
  EXPECT_EQ(Rows(ParquetReader({narrow, wide}).Scan(kEvalColumns)).size(), 2 * rows.size());
  EXPECT_EQ(Rows(a.Scan({{"depth", ColumnType::kText}})),
            Rows(b.Scan({{"depth", ColumnType::kDouble}})));
}

TEST(Parquet, ReadsTheGoldenRows) {
  const std::string folder = GoldenPath("policy/rows");
  SKIP_WITHOUT(folder);
  const ParquetReader reader({folder}, {.threads = 1});
  const std::vector<std::string> rows = Rows(reader.Scan(kEvalColumns));
  EXPECT_EQ(rows.size(), reader.CountRows());
  EXPECT_GT(rows.size(), 0U);
  EXPECT_EQ(DecodedRows(reader, kEvalColumns, reader.RowGroups()), rows);
}

TEST(Parquet, MissingColumnNamesTheNearest) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 3, 2048);
  const ParquetReader reader({path});
  EXPECT_EQ(MessageOf([&] {
              (void)reader.Scan({{"nam", ColumnType::kText}});
            }),
            path + ": has no column 'nam'; did you mean 'name'?");
  EXPECT_EQ(MessageOf([&] {
              (void)reader.Scan({{"castling", ColumnType::kText}});
            }),
            path + ": has no column 'castling'; it has number, name");
}

TEST(Parquet, WrongTypeIsRefused) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 3, 2048);
  const ParquetReader reader({path});
  EXPECT_EQ(
      MessageOf([&] {
        (void)reader.Scan({{"name", ColumnType::kInt64}});
      }),
      path +
          ": column 'name' is VARCHAR, not int64; expected int64: write the column with that type");
  EXPECT_EQ(
      MessageOf([&] {
        (void)reader.Scan({{"number", ColumnType::kBool}});
      }),
      path +
          ": column 'number' is BIGINT, not bool; expected bool: write the column with that type");
}

// Types that our writer does not make, as other programs' files have them.
std::string OtherTypes(const TempFolder& folder) {
  std::string path = folder.File("other.parquet");
  DuckConnection connection(std::make_shared<DuckDatabase>(DuckDatabase::Options{}));
  connection.Execute(
      "COPY (SELECT 18446744073709551615::UBIGINT AS u, 200::UTINYINT AS byte, "
      "1.5::FLOAT AS f, 2.25::DECIMAL(9, 2) AS m, ['a', 'b'] AS l, "
      "{'a': 1, 'b': [0.5]} AS s, DATE '2024-01-31' AS d, "
      "'abc'::BLOB AS raw, true AS yes) TO " +
          SqlText(path),
      path);
  return path;
}

TEST(Parquet, OtherTypesConvert) {
  const TempFolder folder;
  const ParquetReader reader({OtherTypes(folder)});
  std::vector<ColumnSpec> best;
  for (const FileColumn& column : reader.Info(0).columns) {
    best.push_back({column.name, column.name == "u" ? ColumnType::kDouble : column.type});
  }
  EXPECT_EQ(Rows(reader.Scan(best)),
            std::vector<std::string>{"1.8446744073709552e+19|200|1.5|2.25|[a, b]|"
                                     "{'a': 1, 'b': [0.5]}|2024-01-31|abc|true|"});
  EXPECT_EQ(Rows(reader.Scan({{"yes", ColumnType::kInt64}, {"u", ColumnType::kText}})),
            std::vector<std::string>{"1|18446744073709551615|"});
}

TEST(Parquet, NumberTooLargeIsAnError) {
  const TempFolder folder;
  const std::string path = OtherTypes(folder);
  const ParquetReader reader({path});
  const std::string message = MessageOf([&] { Rows(reader.Scan({{"u", ColumnType::kInt64}})); });
  EXPECT_EQ(message.find(path), 0U) << message;
  EXPECT_NE(message.find("18446744073709551615"), std::string::npos) << message;
  EXPECT_NE(message.find("write it with another"), std::string::npos) << message;
}

TEST(Parquet, TooLittleMemoryIsAnErrorThatSaysSo) {
  const TempFolder folder;
  const std::string path = folder.File("wide.parquet");
  {
    ParquetWriter writer(path, {{"t", ColumnType::kText}}, {.compression_level = 1});
    for (int row = 0; row < 100'000; ++row) {
      writer.SetText(0, fmt::format("{:01000}", row));
      writer.EndRow();
    }
    writer.Finish();
  }
  const ParquetReader reader({path}, {.threads = 1, .memory_bytes = 1});
  const std::string message = MessageOf([&] { Rows(reader.Scan({{"t", ColumnType::kText}})); });
  EXPECT_EQ(message.find(path), 0U) << message;
  EXPECT_NE(message.find("; use fewer threads or allow more memory"), std::string::npos) << message;
}

TEST(Parquet, OddFileNamesAreNames) {
  const TempFolder folder;
  const std::string path = folder.File("it's [1] *?.parquet");
  WriteNumbers(path, 0, 10, 2048);
  WriteNumbers(folder.File("it's 1 ab.parquet"), 100, 10, 2048);
  EXPECT_EQ(Numbers(ParquetReader({path}).Scan(kNumber)).size(), 10U);
  EXPECT_EQ(Numbers(ParquetReader({folder.path()}).Scan(kNumber)).size(), 20U);
}

TEST(Parquet, FoldersAreSearchedAndSorted) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.File("b"));
  std::filesystem::create_directory(folder.File("empty"));
  for (const char* name : {"z.parquet", "b/a.parquet", "a.parquet", "notes.txt", "x.parquet.tmp"}) {
    std::ofstream(folder.File(name)) << "x";
  }
  const std::vector<std::string> expected = {folder.File("a.parquet"), folder.File("b/a.parquet"),
                                             folder.File("z.parquet")};
  EXPECT_EQ(FindParquetFiles({folder.path()}), expected);
  EXPECT_EQ(MessageOf([&] { FindParquetFiles({folder.File("empty")}); }),
            folder.File("empty") + ": the folder has no *.parquet file");
  EXPECT_EQ(MessageOf([&] { FindParquetFiles({folder.File("gone")}); }),
            folder.File("gone") + ": there is no such file or folder");
  EXPECT_EQ(MessageOf([&] { FindParquetFiles({}); }), "no Parquet file was named");
}

TEST(ParquetWriter, WritesAsideAndLeavesTheOldFileWithoutFinish) {
  const TempFolder folder;
  const std::string path = folder.File("n.parquet");
  WriteNumbers(path, 0, 10, 2048);
  {
    ParquetWriter writer(path, {{"number", ColumnType::kInt64}});
    for (int64_t n = 0; n < 100'000; ++n) {
      writer.SetInt(0, n);
      writer.EndRow();
    }
    EXPECT_TRUE(testing::Exists(path + ".tmp"));
  }
  EXPECT_FALSE(testing::Exists(path + ".tmp"));
  EXPECT_EQ(ParquetReader({path}).CountRows(), 10U);
  WriteNumbers(path, 0, 20, 2048);
  EXPECT_FALSE(testing::Exists(path + ".tmp"));
  EXPECT_EQ(ParquetReader({path}).CountRows(), 20U);
}

TEST(ParquetWriter, NamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder.File("t.parquet");
  ParquetWriter writer(path, {{"t", ColumnType::kText}});
  for (const char* bad :
       {"\xff", "abcdefgh\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_NE(MessageOf([&] { writer.SetText(0, bad); }).find("is not UTF-8"), std::string::npos);
  }
  EXPECT_NE(MessageOf([&] {
              ParquetWriter second(path, {{"t", ColumnType::kText}});
            }).find("is being written by another"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] {
              ParquetWriter lost(folder.File("no/such/t.parquet"), {{"t", ColumnType::kText}});
            }).find("cannot write"),
            std::string::npos);
}

TEST(ParquetWriter, LongRowsMakeSmallGroups) {
  const TempFolder folder;
  const std::string path = folder.File("long.parquet");
  ParquetWriter writer(path, {{"text", ColumnType::kText}}, {.row_group_bytes = 1 << 20});
  for (int n = 0; n < 5000; ++n) {
    writer.SetText(0, std::string(400, static_cast<char>('a' + n % 26)));
    writer.EndRow();
  }
  writer.Finish();
  const ParquetReader reader({path});
  ASSERT_EQ(reader.Info(0).rows, 5000U);
  EXPECT_EQ(reader.Info(0).row_groups.size(), 3U);
}

TEST(ParquetWriter, SaysWhenTheDiskRefuses) {
  if (!testing::Exists("/dev/full")) GTEST_SKIP() << "/dev/full is not here";
  const TempFolder folder;
  const std::string path = folder.File("full.parquet");
  std::filesystem::create_symlink("/dev/full", path + ".tmp");
  const std::string message = MessageOf([&] {
    ParquetWriter writer(path, {{"number", ColumnType::kInt64}}, {.row_group_rows = 2048});
    for (int64_t n = 0; n < 1'000'000; ++n) {
      writer.SetInt(0, n * n);
      writer.EndRow();
    }
    writer.Finish();
  });
  EXPECT_NE(message, "");
  EXPECT_FALSE(testing::Exists(path));
}

TEST(DuckDb, MissingLibraryNamesTheRemedy) {
  EXPECT_EQ(MessageOf([] {
              LoadDuckDb({"/no/such/libduckdb.so", "nor-this.so"});
            }),
            "Parquet files need DuckDB's library, and none of these could be loaded: "
            "/no/such/libduckdb.so, nor-this.so; run 'make setup'");
  // A library of something else.
  EXPECT_EQ(
      MessageOf([] { LoadDuckDb({"libm.so.6"}); }),
      "libm.so.6: has no function duckdb_create_config; Kibitz needs DuckDB 1.3 or newer: run "
      "'make setup'");
}

}  // namespace
}  // namespace kibitz::io
