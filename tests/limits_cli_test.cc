// Small files that unpack or expand to much: refused before they take memory, with the flag that
// allows them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/limits.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/zip_writer.h"
#include "tests/support/child.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using testing::Child;
using ::testing::HasSubstr;
using testing::ReadWhole;
using testing::TempFolder;

constexpr uint64_t kMegabyte = 1 << 20;

struct Outcome {
  int code = 0;
  std::string err;
  uint64_t peak_bytes = 0;
  double seconds = 0;
};

Outcome Measured(std::vector<std::string> words) {
  const TempFolder folder;
  words.insert(words.begin(), testing::ProgramPath("kibitz"));
  const auto start = std::chrono::steady_clock::now();
  Child child(words, {.err = folder.File("err")});
  Outcome outcome;
  outcome.code = child.Wait();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.err = ReadWhole(folder.File("err"));
  outcome.peak_bytes = child.peak_bytes();
  return outcome;
}

// Refused within seconds, with at most 64 MB more than the program takes for nothing.
void ExpectRefused(const std::vector<std::string>& words, const std::string& hint,
                   uint64_t data_bytes = 0) {
  const uint64_t idle = Measured({"version"}).peak_bytes;
  const Outcome outcome = Measured(words);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(hint));
  if (!testing::CanLimitMemory()) return;
  EXPECT_LT(outcome.peak_bytes, idle + data_bytes + 64 * kMegabyte);
  EXPECT_LT(outcome.seconds, 10);
}

void WriteRepeated(const std::string& path, const std::string& head, const std::string& piece,
                   uint64_t count) {
  io::ByteSink sink(path);
  sink.Write(head);
  std::string many;
  while (many.size() < kMegabyte) many += piece;
  const uint64_t in_many = many.size() / piece.size();
  for (uint64_t i = 0; i < count; i += in_many) sink.Write(many);
  sink.Commit();
}

TEST(LimitsTest, Lc0NetworksOfEmptyBlocks) {
  const TempFolder folder;
  // Three million empty residual blocks: field 10, then field 2 without content.
  std::string blocks;
  for (int i = 0; i < 3'000'000; ++i) blocks += std::string("\x12\x00", 2);
  std::string length;
  for (size_t rest = blocks.size(); rest > 0; rest >>= 7) {
    length += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  }
  io::ByteSink sink(folder.File("a.pb.gz"));
  sink.Write(std::string("\x0d\xc0\x01\x00\x00", 5) + "\x52" + length + blocks);
  sink.Commit();
  ASSERT_LT(std::filesystem::file_size(folder.File("a.pb.gz")), 30'000U);
  for (const char* command : {"search"}) {
    ExpectRefused({"oracle", command, "--net", folder.File("a.pb.gz"), "--nodes", "2"},
                  "more than 1024 residual blocks");
  }
}

TEST(LimitsTest, Lc0NetworksThatUnpackToMuch) {
  const TempFolder folder;
  const std::string path = folder.File("a.pb.gz");
  WriteRepeated(path, std::string("\x0d\xc0\x01\x00\x00", 5), std::string(4096, '\0'),
                (uint64_t{1} << 30) / 4096);
  const uint64_t packed = std::filesystem::file_size(path);
  ExpectRefused({"oracle", "search", "--net", path, "--nodes", "2"},
                "--allow network=", 64 * kMegabyte + 2 * packed);
}

// A .pt file around the pickle.
void WritePickle(const std::string& path, const std::string& body) {
  io::ZipWriter zip(path);
  zip.Add("archive/data.pkl", "\x80\x02" + body + ".");
  zip.Add("archive/version", "3\n");
  zip.Finish();
}

TEST(LimitsTest, PicklesOfManyValues) {
  const TempFolder folder;
  const std::string path = folder.File("a.pt");
  WritePickle(path, "]" + std::string(15'000'000, '\x94'));
  ExpectRefused({"file", "show", path}, "--allow values=1M", std::filesystem::file_size(path));
  std::string list = "](";
  for (int i = 0; i < 4'100'000; ++i) list += "K\x01";
  WritePickle(path, list + "e");
  ExpectRefused({"file", "show", path}, "--allow values=1M", std::filesystem::file_size(path));
  // The flag does allow it, and what is below the limit is read.
  std::string some = "](";
  for (int i = 0; i < 600'000; ++i) some += "K\x01";
  WritePickle(path, some + "e");
  EXPECT_EQ(Measured({"file", "show", path}).code, 1);
  EXPECT_EQ(Measured({"file", "show", path, "--allow", "values=1M"}).code, 0);
}

TEST(LimitsTest, TablesOfManyColumns) {
  const TempFolder folder;
  {
    std::ofstream out(folder.File("a.jsonl"));
    for (int i = 0; i < 300'000; ++i) out << "{\"key" << i << "\":1}\n";
  }
  ExpectRefused({"file", "convert", folder.File("a.jsonl"), "--out", folder.File("a.parquet")},
                "--allow columns=8k");
  ExpectRefused({"file", "show", folder.File("a.jsonl")}, "--allow columns=8k");
  EXPECT_FALSE(testing::Exists(folder.File("a.parquet")));
}

TEST(LimitsTest, PgnWithoutAnEnd) {
  const TempFolder folder;
  const std::string path = folder.File("a.pgn.zst");
  for (const std::string& piece : {std::string(4096, '\0'), std::string(4096, ' '),
                                   std::string(4096, 'x'), "{" + std::string(4095, ' ')}) {
    WriteRepeated(path, "[Event \"x\"]\n\n", piece, (uint64_t{1} << 31) / 4096);
    ExpectRefused({"chess", "pgn", path}, "--allow game=128M");
  }
}

// Brackets by the 100,000 used to end the program, keys by the 100,000 to keep it busy for minutes.
TEST(LimitsTest, DeepAndWideJson) {
  const TempFolder folder;
  std::ofstream(folder.File("deep.json")) << std::string(100'000, '[') << std::string(100'000, ']');
  ExpectRefused({"file", "show", folder.File("deep.json")}, "too deep");
  std::string wide = "{\"0\":0";
  for (int i = 1; i < 150'000; ++i) wide += fmt::format(",\"{}\":0", i);
  wide += "}";
  std::ofstream(folder.File("wide.json")) << wide;
  const Outcome shown = Measured({"file", "show", folder.File("wide.json")});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_LT(shown.seconds, 10);
  std::ofstream(folder.File("wide.jsonl")) << wide << "\n";
  ExpectRefused({"file", "show", folder.File("wide.jsonl")}, "--allow columns=");
  std::ofstream(folder.File("large.json")) << '"' << std::string(3 * kMegabyte, 'x') << '"';
  ExpectRefused({"file", "show", folder.File("large.json")}, "--allow line=4M");
}

TEST(LimitsTest, LinesAndWindowsNameTheirFlag) {
  const TempFolder folder;
  std::ofstream(folder.File("a.jsonl"))
      << "{\"text\":\"" << std::string(3 * kMegabyte, 'x') << "\"}\n";
  const std::vector<std::string> words = {"file", "show", folder.File("a.jsonl")};
  EXPECT_THAT(Measured(words).err, HasSubstr("give --allow line=4M if it is right"));
  EXPECT_EQ(Measured({"file", "show", folder.File("a.jsonl"), "--allow", "line=4M"}).code, 0);
  EXPECT_EQ(Measured({"file", "show", folder.File("a.jsonl"), "--allow", "line"}).code, 2);
  EXPECT_EQ(Measured({"file", "show", folder.File("a.jsonl"), "--allow", "lines=4M"}).code, 2);
}

}  // namespace
}  // namespace kibitz
