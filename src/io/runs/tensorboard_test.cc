#include "io/runs/tensorboard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "io/bytes/crc32c.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::ReadWhole;
using testing::TempFolder;

std::string Hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

void Put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> Scalars(const std::string& path, bool* torn = nullptr) {
  ScalarReader reader(path);
  std::vector<std::string> all;
  while (const auto scalar = reader.Next()) {
    all.push_back(
        fmt::format("{}@{}={} at {}", scalar->tag, scalar->step, scalar->value, scalar->wall_time));
  }
  if (torn != nullptr) *torn = reader.torn();
  return all;
}

std::string MessageOf(const std::string& path) {
  try {
    Scalars(path);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(TensorBoard, WritesTheBytesOfTheFormat) {
  const TempFolder folder;
  TensorBoardWriter writer(folder.path(), {.wall_time = 1600000000.5});
  EXPECT_EQ(writer.path(), folder.File("events.out.tfevents.1600000000.kibitz"));
  writer.Write(300, 2.0, {{"loss", 1.5}});
  const std::string bytes = ReadWhole(writer.path());
  // First record: 26 bytes: wall_time = 1, step = 2, file_version = 3.
  EXPECT_EQ(Hex(bytes.substr(0, 8)), "1a00000000000000");
  EXPECT_EQ(Hex(bytes.substr(12, 26)), "090000200084d7d7411000" + ("1a0d" + Hex("brain.Event:2")));
  // Second record: step 300 as a varint; summary = 5 holding value = 1: tag = 1, simple_value = 2.
  EXPECT_EQ(Hex(bytes.substr(42, 8)), "1b00000000000000");
  EXPECT_EQ(Hex(bytes.substr(54, 27)),
            "09000000000000004010ac02"
            "2a0d"
            "0a0b"
            "0a046c6f7373"
            "150000c03f");
  EXPECT_EQ(bytes.size(), 42U + 12 + 27 + 4);
}

TEST(TensorBoard, RoundTrip) {
  const TempFolder folder;
  const std::string runs = folder.File("runs/a");
  TensorBoardWriter writer(runs, {.wall_time = 100});
  writer.Write(0, 101, {{"train/loss", 3.25}, {"train/lr", 0.5}});
  writer.Write(1'000'000'000'000, 102.25, {{"train/loss", -1.0}});
  writer.Write(7, 103, {});
  const std::vector<std::string> expected = {"train/loss@0=3.25 at 101", "train/lr@0=0.5 at 101",
                                             "train/loss@1000000000000=-1 at 102.25"};
  bool torn = true;
  EXPECT_EQ(Scalars(writer.path(), &torn), expected);
  EXPECT_FALSE(torn);
}

TEST(TensorBoard, ResumedRunLeavesTheSameFile) {
  const auto write = [](TensorBoardWriter& writer, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step) {
      writer.Write(step, static_cast<double>(step), {{"x", static_cast<double>(step * step)}});
    }
  };
  const TempFolder straight;
  const TempFolder resumed;
  std::string expected;
  {
    TensorBoardWriter writer(straight.path(), {.wall_time = 5});
    write(writer, 1, 20);
    expected = ReadWhole(writer.path());
  }
  std::string path;
  {
    TensorBoardWriter writer(resumed.path(), {.wall_time = 5});
    write(writer, 1, 13);
    path = writer.path();
  }
  // Killed in the middle of a record.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  SetLogLevel(LogLevel::kSilent);
  {
    TensorBoardWriter writer(resumed.path(), {.wall_time = 900, .resume_step = 10});
    EXPECT_EQ(writer.path(), path);
    write(writer, 11, 20);
  }
  EXPECT_EQ(ReadWhole(path), expected);
  // Without a step to resume from only the torn record goes.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  { TensorBoardWriter writer(resumed.path(), {.wall_time = 900}); }
  SetLogLevel(LogLevel::kInfo);
  EXPECT_EQ(Scalars(path).size(), 19U);
}

TEST(TensorBoard, OneWriterAtATime) {
  const TempFolder folder;
  const TensorBoardWriter writer(folder.path(), {.wall_time = 5});
  try {
    TensorBoardWriter second(folder.path(), {.wall_time = 6});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("is being written by another process"), std::string::npos);
  }
}

TEST(TensorBoard, UnwritableFolderIsNamed) {
  const TempFolder folder;
  Put(folder.File("file"), "x");
  EXPECT_THROW(TensorBoardWriter(folder.File("file/runs"), {.wall_time = 5}), Error);
}

TEST(TensorBoard, EveryCutIsTornAndEveryFlipIsNoticed) {
  const TempFolder folder;
  std::string bytes;
  {
    TensorBoardWriter writer(folder.path(), {.wall_time = 5});
    for (int step = 0; step < 20; ++step) writer.Write(step, step, {{"a", 1}, {"b", 2}});
    bytes = ReadWhole(writer.path());
  }
  const std::string path = folder.File("damaged");
  for (size_t size = 0; size < bytes.size(); ++size) {
    Put(path, std::string_view(bytes).substr(0, size));
    if (size < 42) {
      EXPECT_EQ(MessageOf(path), path +
                                     ": is not a TensorBoard event file: it must start with a "
                                     "record that holds 'brain.Event:2'");
      continue;
    }
    bool torn = false;
    const size_t count = Scalars(path, &torn).size();
    EXPECT_EQ(count, 2 * ((size - 42) / ((bytes.size() - 42) / 20)));
    EXPECT_EQ(torn, (size - 42) % ((bytes.size() - 42) / 20) != 0);
  }
  for (size_t i = 42; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 16);
    Put(path, flipped);
    EXPECT_NE(MessageOf(path).find("the event record is damaged (checksum)"), std::string::npos);
  }
}

std::string Record(std::string_view data) {
  const auto fixed = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::string length = fixed(uint64_t{data.size()});
  return length + fixed(MaskedCrc(Crc32c(length))) + std::string(data) +
         fixed(MaskedCrc(Crc32c(data)));
}

TEST(TensorBoard, GoodChecksumsAroundNonsenseAreNoticed) {
  const TempFolder folder;
  const std::string start = ReadWhole(TensorBoardWriter(folder.path(), {}).path());
  const std::string path = folder.File("nonsense");
  // A text longer than the record, an endless number, an unknown wire type, a summary cut off.
  for (std::string_view data : {"\x1a\x7f", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                "\x0b", "\x2a\x02\x0a\x05", "\x2a\x04\x0a\x02\x0a\x09"}) {
    Put(path, start + Record(data));
    EXPECT_EQ(MessageOf(path), path +
                                   ", byte 42: the event record is damaged (no protocol-buffer "
                                   "event); what comes before it is good");
  }
}

TEST(TensorBoard, OtherKindsOfValuesArePassedOver) {
  const TempFolder folder;
  const std::string start = ReadWhole(TensorBoardWriter(folder.path(), {}).path());
  const std::string path = folder.File("mixed");
  // A graph (field 4), then a summary of an image (field 4 of the value) and of a simple value.
  Put(path, start + Record("\x22\x03xyz") + Record("\x2a\x0d\x0a\x04\x22\x02zz\x0a\x05\x15zzzz"));
  EXPECT_EQ(Scalars(path).size(), 1U);
}

TEST(TensorBoard, WhatIsNoEventFileIsRefused) {
  const TempFolder folder;
  const std::string path = folder.File("text");
  EXPECT_NE(MessageOf(path).find("cannot read"), std::string::npos);
  Put(path, "step,loss\n1,2.5\n" + std::string(100, 'x'));
  EXPECT_NE(MessageOf(path).find("is not a TensorBoard event file"), std::string::npos);
  Put(path, Record("\x1a\x03"
                   "abc"));
  EXPECT_NE(MessageOf(path).find("is not a TensorBoard event file"), std::string::npos);
}

}  // namespace
}  // namespace kibitz::io
