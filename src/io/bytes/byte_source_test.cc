#include "io/bytes/byte_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/random.h"
#include "io/bytes/byte_sink.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::kibitz::testing::Cut;
using ::kibitz::testing::DataPath;
using ::kibitz::testing::Flip;
using ::kibitz::testing::GoldenPath;
using ::kibitz::testing::MessageOf;
using ::kibitz::testing::ReadWhole;
using ::kibitz::testing::StaysWithin;
using ::kibitz::testing::TempFolder;

constexpr uint64_t kMaxForALie = 64 << 20;
const ByteSourceOptions kSameThread = {.read_ahead = false};

std::string ReadAll(ByteSource& source) {
  std::string all;
  std::string piece(50'000, '\0');
  while (const size_t count = source.Read(piece.data(), piece.size())) all.append(piece, 0, count);
  return all;
}

std::string ReadFile(const std::string& path, const ByteSourceOptions& options = {}) {
  return ReadAll(*OpenBytes(path, options));
}

std::string ReadMemory(std::string bytes, const ByteSourceOptions& options = kSameThread,
                       const std::string& name = "here") {
  return ReadAll(*Unpacked(MemoryBytes(std::move(bytes), name), options));
}

// Some text with structure, larger than all buffers together.
std::string SomeText(size_t size) {
  Rng rng({.seed = 1, .purpose = Purpose("text")});
  std::string text;
  while (text.size() < size) text += fmt::format("line {} {}\n", rng.Below(1000), rng.Next());
  return text;
}

// The bytes of a file that holds `text` packed.
std::string Packed(const std::string& text, const std::string& ending,
                   const ByteSinkOptions& options = {}) {
  const TempFolder folder;
  const std::string path = folder.File("packed" + ending);
  ByteSink sink(path, options);
  sink.Write(text);
  sink.Commit();
  return ReadWhole(path);
}

std::string Skippable(const std::string& content) {
  std::string frame = "\x5e\x2a\x4d\x18";
  for (int i = 0; i < 4; ++i) frame += static_cast<char>(content.size() >> (8 * i));
  return frame + content;
}

TEST(ByteSource, RoundTripsEachKind) {
  const std::string text = SomeText(3'000'000);
  const TempFolder folder;
  for (const std::string ending : {".txt", ".gz", ".zst"}) {
    const std::string path = folder.File("a" + ending);
    WriteFileAtomically(path, Packed(text, ending));
    EXPECT_TRUE(ReadFile(path) == text) << ending;
    EXPECT_TRUE(ReadFile(path, kSameThread) == text) << ending;
    EXPECT_EQ(std::filesystem::file_size(path) < text.size(), ending != ".txt");
  }
}

TEST(ByteSource, GoesByContentNotByName) {
  EXPECT_EQ(ReadMemory(Packed("hello\n", ".gz"), kSameThread, "a.zst"), "hello\n");
  EXPECT_EQ(ReadMemory(Packed("hello\n", ".zst"), kSameThread, "a.txt"), "hello\n");
  EXPECT_EQ(ReadMemory("hello\n", kSameThread, "a.gz"), "hello\n");
}

TEST(ByteSource, ReadsEmptyContent) {
  EXPECT_EQ(ReadMemory(""), "");
  EXPECT_EQ(ReadMemory(Packed("", ".gz")), "");
  EXPECT_EQ(ReadMemory(Packed("", ".zst")), "");
}

TEST(ByteSource, ReadsGzipMembersInARow) {
  const std::string two = Packed("one\n", ".gz") + Packed("", ".gz") + Packed("two\n", ".gz");
  EXPECT_EQ(ReadMemory(two), "one\ntwo\n");
  EXPECT_EQ(ReadMemory(two + std::string(1000, '\0')), "one\ntwo\n") << "padding";
  EXPECT_EQ(MessageOf([&] { ReadMemory(two + "more"); }),
            fmt::format("here, byte {}: bytes after the end of the packed data; the file is "
                        "damaged or joined",
                        two.size()));
}

TEST(ByteSource, ReadsZlib) {
  const std::string packed("x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15", 13);
  EXPECT_EQ(ReadMemory(packed), "hello");
  EXPECT_NE(MessageOf([&] { ReadMemory(packed.substr(0, 9)); }).find("ends inside a zlib stream"),
            std::string::npos);
}

TEST(ByteSource, ReadsZstdFramesInARow) {
  const std::string text = SomeText(10'000);
  std::string packed = Skippable("note");
  for (size_t at = 0; at < text.size(); at += 777) {
    packed += Packed(text.substr(at, 777), ".zst") + Skippable(std::string(at % 300, 'x'));
  }
  EXPECT_EQ(ReadMemory(packed), text);
  EXPECT_EQ(ReadMemory(Skippable("only")), "");
}

TEST(ByteSource, ReadsTheLichessFiles) {
  const std::string plain = testing::DataFile("evals", ".jsonl");
  SKIP_WITHOUT(plain);
  const std::string text = ReadWhole(plain);
  for (const std::string& packed : testing::DataFiles("evals", ".jsonl.zst")) {
    EXPECT_TRUE(ReadFile(packed) == text) << packed;
  }
}

TEST(ByteSource, RefusesOtherFramesAfterZstd) {
  const std::string packed = Packed("one\n", ".zst");
  const std::string old_format = "\x27\xb5\x2f\xfd";
  EXPECT_EQ(MessageOf([&] {
              ReadMemory(packed + old_format);
            }).find(fmt::format("here, byte {}: found", packed.size())),
            0U);
  EXPECT_NE(MessageOf([&] { ReadMemory(packed + "ab"); }).find("cut short"), std::string::npos);
}

TEST(ByteSource, RefusesLargeWindows) {
  const std::string window_128m("\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", 9);
  EXPECT_EQ(MessageOf([&] { ReadMemory(window_128m); }),
            "here, byte 0: the zstd frame asks for a window of 128 MB, 32 MB are allowed; pack it "
            "again without --long or --ultra, or give --allow window=128M if it is right");
  EXPECT_EQ(ReadMemory(window_128m, {.max_window = uint64_t{1} << 27, .read_ahead = false}), "")
      << "an empty last block";
  const std::string content_1t("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00",
                               16);
  std::string content_of_all = content_1t;
  std::fill(content_of_all.begin() + 5, content_of_all.begin() + 13, '\xff');
  for (const std::string& content : {content_1t, content_of_all}) {
    EXPECT_NE(MessageOf([&] { ReadMemory(content); }).find("asks for more than 2 GB at once"),
              std::string::npos);
  }
  EXPECT_TRUE(StaysWithin(kMaxForALie, [&] { ReadMemory(window_128m, {}); }));
  EXPECT_TRUE(StaysWithin(kMaxForALie, [&] { ReadMemory(content_1t, {}); }));
  const std::string window_32m("\x28\xb5\x2f\xfd\x00\x78\x01\x00\x00", 9);
  EXPECT_TRUE(StaysWithin(kMaxForALie, [&] {
    if (!ReadMemory(window_32m, {}).empty()) std::abort();
  })) << "the largest window allowed";
  EXPECT_EQ(MessageOf([&] { ReadMemory("", {.max_window = uint64_t{1} << 32}); }),
            "--allow window=4294967296: expected 1k to 2G");
}

TEST(ByteSource, TellsWhereAFileIsCutShort) {
  const std::string text = SomeText(100'000);
  for (const std::string ending : {".gz", ".zst"}) {
    const std::string packed = Packed(text, ending);
    for (const ByteSourceOptions options : {kSameThread, ByteSourceOptions{}}) {
      const auto source = Unpacked(MemoryBytes(packed.substr(0, packed.size() - 3), "a"), options);
      std::string got;
      const std::string message = MessageOf([&] {
        char byte = 0;
        while (source->Read(&byte, 1) == 1) got += byte;
      });
      EXPECT_TRUE(got == text) << "all that is there comes first: " << got.size();
      EXPECT_EQ(message,
                fmt::format("a, byte {}: the file ends inside a {}; it was cut short, "
                            "fetch it again",
                            packed.size() - 3, ending == ".gz" ? "gzip member" : "zstd frame"));
    }
  }
}

TEST(ByteSource, RefusesWhatIsTooShortForItsName) {
  const std::string message =
      "a.jsonl.gz: found 0 bytes, expected packed data; the file was cut short, fetch it again";
  EXPECT_EQ(MessageOf([] { ReadMemory("", kSameThread, "a.jsonl.gz"); }), message);
  EXPECT_NE(MessageOf([] { ReadMemory("\x28\xb5", kSameThread, "a.zst"); }).find("found 2 bytes"),
            std::string::npos);
}

TEST(ByteSource, FindsChangedBytes) {
  std::string gzip = Packed(SomeText(5000), ".gz");
  gzip[gzip.size() - 8] = static_cast<char>(gzip[gzip.size() - 8] ^ 1);
  EXPECT_NE(MessageOf([&] { ReadMemory(gzip); }).find("broken gzip data (incorrect data check)"),
            std::string::npos);
  std::string zstd = Packed(SomeText(5000), ".zst");
  zstd.back() = static_cast<char>(zstd.back() ^ 1);
  EXPECT_NE(MessageOf([&] { ReadMemory(zstd); }).find("broken zstd data ("), std::string::npos);
}

TEST(ByteSource, TellsOfFilesThatCannotBeRead) {
  EXPECT_NE(MessageOf([] { OpenBytes("/nowhere/a.gz"); }).find("cannot read /nowhere/a.gz"),
            std::string::npos);
  const TempFolder folder;
  EXPECT_NE(MessageOf([&] { ReadFile(folder.path()); }).find("cannot read " + folder.path()),
            std::string::npos);
}

TEST(ByteSource, ReadsPipes) {
  const TempFolder folder;
  const std::string path = folder.File("a.gz");
  WriteFileAtomically(path, Packed("through a pipe", ".gz"));
  std::string got;
  std::FILE* pipe = popen(fmt::format("cat {}", path).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  got = ReadFile(fmt::format("/dev/fd/{}", fileno(pipe)));
  pclose(pipe);
  EXPECT_EQ(got, "through a pipe");
}

TEST(ByteSource, MayBeDroppedAtAnyTime) {
  const std::string packed = Packed(std::string(20 << 20, 'a'), ".zst");
  for (int pieces = 0; pieces < 20; ++pieces) {
    const auto source = Unpacked(MemoryBytes(packed, "a"));
    std::string buffer(100'000, '\0');
    for (int i = 0; i < pieces; ++i) EXPECT_GT(source->Read(buffer.data(), buffer.size()), 0U);
  }
}

TEST(ByteSource, TellsItsPosition) {
  const std::string packed = Packed(SomeText(2'000'000), ".zst");
  const auto source = Unpacked(MemoryBytes(packed, "a"));
  ReadAll(*source);
  EXPECT_EQ(source->Position(), packed.size());
  EXPECT_EQ(source->name(), "a");
}

TEST(ByteSource, ServesAsAFunction) {
  const auto read = ReadFunction(Unpacked(MemoryBytes(Packed("abc", ".gz"), "a")));
  std::string buffer(10, '\0');
  EXPECT_EQ(read(buffer.data(), buffer.size()), 3U);
  EXPECT_EQ(read(buffer.data(), buffer.size()), 0U);
}

TEST(Corruption, TheLimitOfMemoryHolds) {
  if (!testing::CanLimitMemory()) GTEST_SKIP() << "not under sanitizers";
  EXPECT_TRUE(StaysWithin(kMaxForALie, [] { std::string(kMaxForALie / 2, 'a'); }));
  EXPECT_FALSE(StaysWithin(kMaxForALie, [] { std::string(kMaxForALie + 1, 'a'); }));
}

TEST(ByteSource, BombsStreamInBoundedMemory) {
  const std::string zeros(8 << 20, '\0');
  const TempFolder folder;
  for (const std::string ending : {".gz", ".zst"}) {
    const std::string path = folder.File("bomb" + ending);
    ByteSink sink(path, {.level = 1});
    for (int i = 0; i < 32; ++i) sink.Write(zeros);
    sink.Commit();
    EXPECT_LT(std::filesystem::file_size(path) * (ending == ".gz" ? 200 : 1000), 256 << 20);
    EXPECT_TRUE(StaysWithin(kMaxForALie, [&] {
      const auto source = OpenBytes(path);
      std::string piece(100'000, '\0');
      uint64_t size = 0;
      while (const size_t count = source->Read(piece.data(), piece.size())) size += count;
      if (size != 256 << 20) std::abort();
    })) << ending;
  }
}

void ExpectSurvivesDamage(const std::string& name) {
  const std::string bytes = ReadWhole(GoldenPath(name));
  const auto read = [&](std::string_view damaged) {
    ReadMemory(std::string(damaged), kSameThread, name);
  };
  EXPECT_EQ(Cut(bytes, {}, read).reads, 0) << "a file that is cut is never whole";
  EXPECT_GT(Flip(bytes, {}, read).errors, 9000) << "checksums see nearly all";
}

TEST(ByteSource, SurvivesDamageToZstd) {
  ExpectSurvivesDamage("policy/rows/lichess_db_eval.jsonl.zst");
}

TEST(ByteSource, SurvivesDamageToGzip) {
  ExpectSurvivesDamage("twenty48/raws/d3_v1/depth03_worker01_seed0272350806_game000003.jsonl.gz");
}

TEST(ByteSink, WritesWhatGzipReads) {
  const std::string text = SomeText(500'000);
  const TempFolder folder;
  const std::string path = folder.File("a.gz");
  WriteFileAtomically(path, Packed(text, ".gz", {.level = 9}));
  const auto ran = testing::RunCommand({"gzip", "-dc", path});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out == text);
}

TEST(ByteSink, WritesTheSameWithAnyNumberOfThreads) {
  const std::string text = SomeText(6'000'000);
  const std::string one = Packed(text, ".zst", {.level = 1, .threads = 1});
  EXPECT_TRUE(one == Packed(text, ".zst", {.level = 1, .threads = 3}));
  EXPECT_TRUE(ReadMemory(one) == text);
}

TEST(ByteSink, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  {
    ByteSink sink(folder.File("a.zst"));
    sink.Write("text");
    EXPECT_EQ(sink.size(), 4U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ByteSink, RefusesLevelsOutOfRange) {
  EXPECT_EQ(MessageOf([] { ByteSink("a.gz", {.level = 10}); }),
            "a.gz: level 10 for packing, expected 1 to 9 (0: the default)");
  EXPECT_EQ(MessageOf([] { ByteSink("a.zst", {.level = 23}); }),
            "a.zst: level 23 for packing, expected 1 to 22 (0: the default)");
}

}  // namespace
}  // namespace kibitz::io
