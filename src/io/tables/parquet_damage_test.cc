// Damaged Parquet files: always an Error that names the file, never a crash. Damage that leaves a
// valid file (a changed letter in a text) cannot be told: the format has no checksum here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "io/tables/parquet.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::ReadWhole;
using testing::TempFolder;

void Put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The message of the Error, or nothing.
std::optional<std::string> Read(
    const std::string& path,
    const std::function<void(const ParquetReader&, const std::vector<ColumnSpec>&)>& use) {
  try {
    const ParquetReader reader({path}, {.threads = 1, .memory_bytes = uint64_t{256} << 20});
    std::vector<ColumnSpec> columns;
    for (const FileColumn& column : reader.Info(0).columns) {
      columns.push_back({column.name, column.type});
    }
    use(reader, columns);
  } catch (const Error& error) {
    return error.message();
  }
  return std::nullopt;
}

// Reads everything, by row groups and as a whole; the message of the second Error, or nothing.
std::optional<std::string> ReadAll(const std::string& path) {
  const auto by_groups = Read(path, [](const ParquetReader& reader, const auto& columns) {
    reader.ForEachChunk(columns, reader.RowGroups(), [](const Chunk&) {});
  });
  EXPECT_NE(by_groups.value_or(path).find(path), std::string::npos) << *by_groups;
  return Read(path, [](const ParquetReader& reader, const auto& columns) {
    ParquetScan scan = reader.Scan(columns);
    while (scan.Next() != nullptr) {
    }
  });
}

std::string MakeFile(const TempFolder& folder) {
  const std::string path = folder.File("made.parquet");
  ParquetWriter writer(path, {{"t", ColumnType::kText}, {"n", ColumnType::kInt64}},
                       {.row_group_rows = 2048});
  Rng rng({.seed = 1});
  for (int row = 0; row < 5000; ++row) {
    if (row % 9 != 0) writer.SetText(0, fmt::format("{:x}", rng.Next()));
    writer.SetInt(1, static_cast<int64_t>(rng.Below(1000)));
    writer.EndRow();
  }
  writer.Finish();
  return ReadWhole(path);
}

// Every cut within the first 4 KB, and 500 more, fail with the file's name.
void CheckCuts(const TempFolder& folder, const std::string& whole) {
  const std::string path = folder.File("cut.parquet");
  Rng rng({.seed = 2});
  std::vector<size_t> sizes;
  for (size_t size = 0; size < std::min<size_t>(4096, whole.size()); ++size) sizes.push_back(size);
  for (int i = 0; i < 500; ++i) sizes.push_back(rng.Below(whole.size()));
  for (size_t size : sizes) {
    Put(path, std::string_view(whole).substr(0, size));
    const auto message = ReadAll(path);
    ASSERT_TRUE(message.has_value()) << "cut to " << size << " bytes";
    ASSERT_NE(message->find(path), std::string::npos) << *message;
  }
}

// Flips one bit a file, in [begin, end). Returns how many were noticed.
int CheckFlips(const TempFolder& folder, const std::string& whole, size_t begin, size_t end) {
  const std::string path = folder.File("flip.parquet");
  int noticed = 0;
  for (uint64_t i = 0; i < 120; ++i) {
    Rng rng({.seed = 3, .sample = i});
    std::string bytes = whole;
    char& byte = bytes[begin + rng.Below(end - begin)];
    byte = static_cast<char>(byte ^ (1 << rng.Below(8)));
    Put(path, bytes);
    const auto message = ReadAll(path);
    if (!message) continue;
    ++noticed;
    EXPECT_NE(message->find(path), std::string::npos) << *message;
  }
  return noticed;
}

size_t FooterStart(const std::string& whole) {
  uint32_t size = 0;
  std::memcpy(&size, whole.data() + whole.size() - 8, 4);
  return whole.size() - 8 - size;
}

TEST(ParquetDamage, CutsOfAMadeFile) {
  const TempFolder folder;
  CheckCuts(folder, MakeFile(folder));
}

TEST(ParquetDamage, CutsOfARealFile) {
  const std::string real = testing::DataFile("evals", ".parquet");
  SKIP_WITHOUT(real);
  const TempFolder folder;
  CheckCuts(folder, ReadWhole(real));
}

TEST(ParquetDamage, FlipsInTheFooter) {
  const TempFolder folder;
  const std::string whole = MakeFile(folder);
  EXPECT_GT(CheckFlips(folder, whole, FooterStart(whole), whole.size()), 20);
}

TEST(ParquetDamage, FlipsInThePages) {
  const TempFolder folder;
  const std::string whole = MakeFile(folder);
  EXPECT_GT(CheckFlips(folder, whole, 4, FooterStart(whole)), 10);
}

TEST(ParquetDamage, FlipsInARealFile) {
  const std::string real = testing::DataFile("evals", ".parquet");
  SKIP_WITHOUT(real);
  const TempFolder folder;
  const std::string whole = ReadWhole(real);
  EXPECT_GT(CheckFlips(folder, whole, 0, whole.size()), 10);
}

TEST(ParquetDamage, TheFrameIsCheckedFirst) {
  const TempFolder folder;
  const std::string path = folder.File("x.parquet");
  const auto message = [&](std::string_view bytes) {
    Put(path, bytes);
    return ReadAll(path).value_or("");
  };
  EXPECT_EQ(message("PAR1PAR1"),
            path + ": has 8 bytes, too few for a Parquet file; fetch or write the file again");
  EXPECT_EQ(message("{\"fen\": \"8/8\"}"), path +
                                               ": starts with '{\"fe', a Parquet file with "
                                               "\"PAR1\"; fetch or write the file again");
  EXPECT_EQ(message("PAR1aaaaaaaaaaaa"), path +
                                             ": ends with 'aaaa', a Parquet file with \"PAR1\"; "
                                             "it was cut off: fetch or write the file again");
  EXPECT_EQ(message("PAREaaaaaaaaPARE"), path + ": is encrypted; decrypt it first");
  EXPECT_EQ(message("PAR1aaaa\xff\xff\xff\xffPAR1"),
            path +
                ": says its footer has 4294967295 bytes, in a file of 16; fetch or write the file "
                "again");
  EXPECT_NE(ReadAll("/dev/null").value_or("").find("is not a regular file"), std::string::npos);
}

TEST(ParquetDamage, RowCountsMustAgree) {
  const TempFolder folder;
  std::string bytes = MakeFile(folder);
  // The footer's count comes before its row groups: 5000 as Thrift writes it, made 5001.
  const size_t count = bytes.find("\x90\x4e", FooterStart(bytes));
  ASSERT_NE(count, std::string::npos);
  bytes[count] = '\x92';
  const std::string path = folder.File("lie.parquet");
  Put(path, bytes);
  EXPECT_EQ(
      ReadAll(path).value_or(""),
      path + ": the footer counts 5001 rows, its row groups 5000; fetch or write the file again");
  bytes[count] = '\x91';
  Put(path, bytes);
  EXPECT_EQ(ReadAll(path).value_or(""),
            path + ": the footer counts '-5001' rows; fetch or write the file again");
}

TEST(ParquetDamage, AFileReplacedUnderAReaderIsNoticed) {
  const TempFolder folder;
  const std::string path = folder.File("made.parquet");
  MakeFile(folder);
  const ParquetReader reader({path}, {.threads = 1});
  EXPECT_EQ(reader.CountRows(), 5000U);
  {
    ParquetWriter writer(path, {{"t", ColumnType::kText}});
    writer.EndRow();
    writer.Finish();
  }
  std::string message;
  try {
    ParquetScan scan = reader.Scan({{"t", ColumnType::kText}});
    while (scan.Next() != nullptr) {
    }
  } catch (const Error& error) {
    message = error.message();
  }
  EXPECT_EQ(message, path + ": gave 1 rows, its footer counts 5000; fetch or write the file again");
  EXPECT_THROW(
      reader.ForEachChunk({{"t", ColumnType::kText}}, reader.RowGroups(), [](const Chunk&) {}),
      Error);
}

TEST(ParquetDamage, AGoodFileIsRead) {
  const TempFolder folder;
  const std::string path = folder.File("good.parquet");
  Put(path, MakeFile(folder));
  EXPECT_EQ(ReadAll(path), std::nullopt);
}

}  // namespace
}  // namespace kibitz::io
