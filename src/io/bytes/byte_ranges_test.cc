#include "io/bytes/byte_ranges.h"

#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/random.h"
#include "io/bytes/byte_sink.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::kibitz::testing::MessageOf;
using ::kibitz::testing::ReadWhole;
using ::kibitz::testing::TempFolder;

std::string ReadAll(ByteSource& source, size_t at_once) {
  std::string all;
  std::string piece(at_once, '\0');
  while (const size_t count = source.Read(piece.data(), piece.size())) all.append(piece, 0, count);
  return all;
}

// Lines of very different lengths, some blank.
std::string SomeLines(size_t lines) {
  Rng rng({.seed = 3});
  std::string text;
  for (size_t i = 0; i < lines; ++i) {
    const size_t length = rng.Below(10) == 0 ? rng.Below(900) : rng.Below(40);
    for (size_t k = 0; k < length; ++k) text += static_cast<char>('a' + rng.Below(26));
    text += '\n';
  }
  return text;
}

class ByteRangesTest : public ::testing::Test {
 protected:
  std::string Zstd(const std::string& text) const {
    ByteSink sink(folder_.File("part.zst"));
    sink.Write(text);
    sink.Commit();
    return ReadWhole(folder_.File("part.zst"));
  }
  // Frames of `text`, cut anywhere; `hinted` as pzstd writes them.
  std::string Frames(const std::string& text, bool hinted) const {
    std::string packed;
    Rng rng({.seed = 4});
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(text.size() - at, rng.Below(700));
      const std::string frame = Zstd(text.substr(at, size));
      if (hinted || rng.Below(8) == 0) {
        const uint32_t bytes = hinted ? static_cast<uint32_t>(frame.size()) : 7;
        packed += std::string("\x50\x2a\x4d\x18\x04\0\0\0", 8);
        packed.append(reinterpret_cast<const char*>(&bytes), 4);
      }
      packed += frame;
      at += size;
    }
    return packed;
  }
  // The text of every range, joined and one by one.
  void ExpectWhole(const std::string& path, const std::string& text, uint64_t min_bytes,
                   size_t min_ranges) {
    const auto ranges = CutBytes(path, min_bytes);
    EXPECT_GE(ranges.size(), min_ranges);
    uint64_t end = 0;
    std::string joined;
    for (const ByteRange& range : ranges) {
      EXPECT_EQ(range.begin, end);
      end = range.end;
      const std::string lines = ReadAll(*LinesIn(path, range, {.read_ahead = false}), 1 + end % 97);
      EXPECT_TRUE(lines.empty() || lines.ends_with('\n') || !text.ends_with('\n'));
      joined += lines;
    }
    EXPECT_EQ(joined, text) << path << " in " << ranges.size();
  }

  TempFolder folder_;
};

TEST_F(ByteRangesTest, RangesOfFramesHoldEveryLineOnce) {
  const std::string text = SomeLines(400);
  for (const bool hinted : {false, true}) {
    const std::string path = folder_.File("a.jsonl.zst");
    WriteFileAtomically(path, Frames(text, hinted));
    for (const uint64_t min_bytes : {1, 300, 5000}) ExpectWhole(path, text, min_bytes, 2);
    EXPECT_GT(CutBytes(path, 1).size(), 20U);
  }
}

TEST_F(ByteRangesTest, RangesOfPlainLines) {
  for (const std::string& text :
       {SomeLines(300), SomeLines(50) + "no end", std::string("\n\n\nx"),
        std::string("a\nx^ looks like zlib\n\x1f\x8b\x08 like gzip\n\x28\xb5\x2f\xfd zstd\n")}) {
    const std::string path = folder_.File("a.jsonl");
    WriteFileAtomically(path, text);
    for (const uint64_t min_bytes : {1, 2, 64, 1000}) ExpectWhole(path, text, min_bytes, 1);
  }
}

TEST_F(ByteRangesTest, WhatCannotBeCutIsOneRange) {
  const std::string text = SomeLines(300);
  for (const char* name : {"a.gz", "a.zst"}) {
    ByteSink sink(folder_.File(name));
    sink.Write(text);
    sink.Commit();
    EXPECT_EQ(CutBytes(folder_.File(name), 1).size(), 1U);
    ExpectWhole(folder_.File(name), text, 1, 1);
  }
}

// The rest behind the damage is one range, which says so.
TEST_F(ByteRangesTest, DamageIsFoundWhereItIsRead) {
  const std::string path = folder_.File("a.zst");
  std::string packed = Zstd("one\n") + Zstd("two\n") + Zstd("three\n");
  const size_t second = Zstd("one\n").size();
  packed[second + Zstd("two\n").size()] = 'X';
  WriteFileAtomically(path, packed);
  const auto ranges = CutBytes(path, 1);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ReadAll(*LinesIn(path, {0, second}, {.read_ahead = false}), 1), "one\ntwo\n");
  EXPECT_NE(
      MessageOf([&] { ReadAll(*LinesIn(path, ranges[1]), 100); }).find("expected a zstd frame"),
      std::string::npos);
}

}  // namespace
}  // namespace kibitz::io
