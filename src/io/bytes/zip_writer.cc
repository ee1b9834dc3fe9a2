#include "io/bytes/zip_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "io/bytes/crc32c.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/zip_format.h"

namespace kibitz::io {
namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): six constants.

constexpr uint16_t kUtf8Names = 0x0800;
constexpr uint16_t kZip64Id = 1;
constexpr uint16_t kPaddingId = 0x4246;  // "FB": the padding field that torch uses.
constexpr uint16_t kVersionPlain = 20;   // Of the zip format.
constexpr uint16_t kVersionZip64 = 45;
constexpr uint16_t kFirstOfJanuary1980 = 0x0021;  // Same content, same bytes.
constexpr size_t kAlignment = 64;
constexpr size_t kCrcOffset = 14;  // In the local header.
constexpr size_t kChunk = 1 << 20;

// Method, time, date: the same for every entry.
void AppendMethodAndTime(std::string& out) {
  AppendLittle<uint16_t>(out, 0);
  AppendLittle<uint16_t>(out, 0);
  AppendLittle<uint16_t>(out, kFirstOfJanuary1980);
}

uint32_t Narrow(uint64_t value, bool wide) {
  return wide ? kSaturated : static_cast<uint32_t>(value);
}

}  // namespace

ZipWriter::ZipWriter(const std::string& path, uint64_t zip64_from)
    : file_(path), zip64_from_(zip64_from) {}

void ZipWriter::Add(std::string_view name, std::string_view bytes) {
  CHECK(name.size() < 0xffff);
  Entry entry = {.name = std::string(name), .size = bytes.size(), .offset = file_.size()};
  std::string header = LocalHeader(entry);
  file_.Write(header);
  // Checksums and writing in one pass, so that a mapped source is read from disk once.
  uLong crc = crc32(0, nullptr, 0);
  uint32_t content_crc = 0;
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    const std::string_view chunk = bytes.substr(at, kChunk);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
    content_crc = Crc32c(chunk, content_crc);
    file_.Write(chunk);
  }
  entry.crc = static_cast<uint32_t>(crc);
  std::string patch;
  AppendLittle(patch, entry.crc);
  file_.WriteAt(entry.offset + kCrcOffset, patch);
  header.replace(kCrcOffset, patch.size(), patch);
  crc_ = Crc32cJoined(Crc32c(header, crc_), content_crc, bytes.size());
  entries_.push_back(std::move(entry));
}

std::string ZipWriter::LocalHeader(const Entry& entry) const {
  const bool wide = entry.size >= zip64_from_;
  std::string extra;
  if (wide) {
    AppendLittle(extra, kZip64Id);
    AppendLittle<uint16_t>(extra, 16);
    AppendLittle(extra, entry.size);
    AppendLittle(extra, entry.size);
  }
  const uint64_t before = entry.offset + 30 + entry.name.size() + extra.size() + 4;
  const auto padding = static_cast<uint16_t>((kAlignment - before % kAlignment) % kAlignment);
  AppendLittle(extra, kPaddingId);
  AppendLittle(extra, padding);
  extra.append(padding, 'Z');

  std::string out;
  AppendLittle(out, kLocalMagic);
  AppendLittle(out, wide ? kVersionZip64 : kVersionPlain);
  AppendLittle(out, kUtf8Names);
  AppendMethodAndTime(out);
  AppendLittle<uint32_t>(out, 0);  // The checksum, filled in later.
  AppendLittle(out, Narrow(entry.size, wide));
  AppendLittle(out, Narrow(entry.size, wide));
  AppendLittle(out, static_cast<uint16_t>(entry.name.size()));
  AppendLittle(out, static_cast<uint16_t>(extra.size()));
  return out + entry.name + extra;
}

void ZipWriter::WriteDirectory() {
  for (const Entry& entry : entries_) {
    const bool wide_size = entry.size >= zip64_from_;
    const bool wide_offset = entry.offset >= zip64_from_;
    std::string extra;
    if (wide_size || wide_offset) {
      AppendLittle(extra, kZip64Id);
      AppendLittle(extra, static_cast<uint16_t>((wide_size ? 16 : 0) + (wide_offset ? 8 : 0)));
      if (wide_size) AppendLittle(extra, entry.size);
      if (wide_size) AppendLittle(extra, entry.size);
      if (wide_offset) AppendLittle(extra, entry.offset);
    }
    std::string out;
    AppendLittle(out, kCentralMagic);
    AppendLittle(out, kVersionZip64);
    AppendLittle(out, extra.empty() ? kVersionPlain : kVersionZip64);
    AppendLittle(out, kUtf8Names);
    AppendMethodAndTime(out);
    AppendLittle(out, entry.crc);
    AppendLittle(out, Narrow(entry.size, wide_size));
    AppendLittle(out, Narrow(entry.size, wide_size));
    AppendLittle(out, static_cast<uint16_t>(entry.name.size()));
    AppendLittle(out, static_cast<uint16_t>(extra.size()));
    out.append(10, '\0');  // No comment, first disk, no attributes.
    AppendLittle(out, Narrow(entry.offset, wide_offset));
    Write(out + entry.name + extra);
  }
}

void ZipWriter::WriteEnd(uint64_t directory, uint64_t size, std::string_view comment) {
  const uint64_t count = entries_.size();
  const bool wide = count >= 0xffff || directory >= zip64_from_ || size >= zip64_from_;
  std::string out;
  if (wide) {
    AppendLittle(out, kZip64EndMagic);
    AppendLittle<uint64_t>(out, 44);  // What follows of this record.
    AppendLittle(out, kVersionZip64);
    AppendLittle(out, kVersionZip64);
    AppendLittle<uint64_t>(out, 0);  // First disk of one.
    AppendLittle(out, count);
    AppendLittle(out, count);
    AppendLittle(out, size);
    AppendLittle(out, directory);
    AppendLittle(out, kZip64LocatorMagic);
    AppendLittle<uint32_t>(out, 0);
    AppendLittle(out, directory + size);
    AppendLittle<uint32_t>(out, 1);
  }
  AppendLittle(out, kEndMagic);
  AppendLittle<uint32_t>(out, 0);
  const auto narrow_count = static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  AppendLittle(out, narrow_count);
  AppendLittle(out, narrow_count);
  AppendLittle(out, Narrow(size, wide && size >= zip64_from_));
  AppendLittle(out, Narrow(directory, wide && directory >= zip64_from_));
  constexpr size_t kDigits = 8;
  const size_t comment_size = comment.empty() ? 0 : comment.size() + kDigits;
  AppendLittle(out, static_cast<uint16_t>(comment_size));
  Write(out + std::string(comment));
  if (!comment.empty()) Write(fmt::format("{:08x}", crc_));
}

void ZipWriter::Write(std::string_view bytes) {
  crc_ = Crc32c(bytes, crc_);
  file_.Write(bytes);
}

void ZipWriter::Finish(bool checksum) {
  const uint64_t directory = file_.size();
  WriteDirectory();
  WriteEnd(directory, file_.size() - directory, checksum ? kZipSumLabel : "");
  file_.Commit();
}

}  // namespace kibitz::io
