#include "io/bytes/zip_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/zip_format.h"

namespace kibitz::io {
namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): six constants.

constexpr size_t kLocalSize = 30;
constexpr size_t kCentralSize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kZip64EndSize = 56;
constexpr size_t kZip64LocatorSize = 20;
constexpr size_t kLongestComment = 0xffff;

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// One line of the central directory.
struct ZipReader::Record {
  std::string_view name;
  uint64_t size = 0;         // Of the content.
  uint64_t stored_size = 0;  // In the file: the same for an entry that is not compressed.
  uint64_t local = 0;        // Where the entry's own header begins.
  uint16_t method = 0;
};

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string place)
    : bytes_(bytes), place_(std::move(place)) {
  const Directory directory = FindDirectory();
  if (directory.count > directory.size / kCentralSize) {
    Fail(directory.offset, fmt::format("found {} entries in a directory of {} bytes",
                                       directory.count, directory.size));
  }
  uint64_t at = directory.offset;
  const uint64_t end = directory.offset + directory.size;
  entries_.reserve(directory.count);
  index_.reserve(directory.count);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const uint64_t record_at = at;
    const Record record = ReadRecord(at, end);
    const uint64_t data = DataOffset(record);
    if (data > directory.offset || record.stored_size > directory.offset - data) {
      Fail(record_at, fmt::format("entry {} of {} bytes runs past the data", Quoted(record.name),
                                  record.stored_size));
    }
    ranges.emplace_back(record.local, data + record.stored_size);
    entries_.push_back({record.name, bytes_.subspan(data, record.stored_size), record.method});
    if (!index_.emplace(record.name, i).second) {
      Fail(record_at, fmt::format("entry {} occurs twice", Quoted(record.name)));
    }
  }
  if (at != end) Fail(at, "the directory is longer than its entries");
  CheckOverlaps(std::move(ranges));
}

const ZipReader::Entry* ZipReader::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::span<const std::byte> ZipReader::Content(const Entry& entry) const {
  if (entry.method == 0) return entry.raw;
  throw Error(
      "{}: entry {} is compressed (method {}), expected as torch stores it: unpack the file and "
      "pack it again with 'zip -0', or save it again with torch",
      place_, Quoted(entry.name), entry.method);
}

ZipReader::Directory ZipReader::FindDirectory() const {
  if (bytes_.size() < kEndSize) Fail(0, "the file is too short for a zip; copy it again");
  const size_t last = bytes_.size() - kEndSize;
  const size_t first = last - std::min(last, kLongestComment);
  for (size_t at = last + 1; at-- > first;) {
    if (LoadLittle<uint32_t>(bytes_, at) != kEndMagic) continue;
    if (LoadLittle<uint16_t>(bytes_, at + 20) != last - at) continue;
    Directory directory = {.offset = LoadLittle<uint32_t>(bytes_, at + 16),
                           .size = LoadLittle<uint32_t>(bytes_, at + 12),
                           .count = LoadLittle<uint16_t>(bytes_, at + 10)};
    if (LoadLittle<uint32_t>(bytes_, at + 4) != 0 ||
        LoadLittle<uint16_t>(bytes_, at + 8) != directory.count) {
      Fail(at, "the zip is split over several files; join them first");
    }
    uint64_t limit = at;
    if (at >= kZip64LocatorSize &&
        LoadLittle<uint32_t>(bytes_, at - kZip64LocatorSize) == kZip64LocatorMagic) {
      limit = LoadLittle<uint64_t>(bytes_, at - kZip64LocatorSize + 8);
      ReadZip64(at, directory);
    }
    if (directory.offset > limit || directory.size != limit - directory.offset) {
      Fail(at, fmt::format("the directory ({} bytes at {}) does not end where the end record "
                           "begins ({})",
                           directory.size, directory.offset, limit));
    }
    return directory;
  }
  Fail(bytes_.size(), "found no zip end record: the file is cut off or no zip; copy it again");
}

void ZipReader::ReadZip64(size_t end_record, Directory& directory) const {
  const size_t locator = end_record - kZip64LocatorSize;
  const auto at = LoadLittle<uint64_t>(bytes_, locator + 8);
  if (LoadLittle<uint32_t>(bytes_, locator + 4) != 0 ||
      LoadLittle<uint32_t>(bytes_, locator + 16) != 1) {
    Fail(locator, "the zip is split over several files; join them first");
  }
  if (locator < kZip64EndSize || at > locator - kZip64EndSize ||
      LoadLittle<uint32_t>(bytes_, at) != kZip64EndMagic ||
      LoadLittle<uint64_t>(bytes_, at + 4) != locator - at - 12) {
    Fail(locator, "the zip64 locator points to no zip64 end record");
  }
  const Directory wide = {.offset = LoadLittle<uint64_t>(bytes_, at + 48),
                          .size = LoadLittle<uint64_t>(bytes_, at + 40),
                          .count = LoadLittle<uint64_t>(bytes_, at + 32)};
  const auto agree = [](uint64_t narrow, uint64_t value, uint64_t saturated) {
    return narrow == value || narrow == saturated;
  };
  if (LoadLittle<uint64_t>(bytes_, at + 16) != 0 ||
      LoadLittle<uint64_t>(bytes_, at + 24) != wide.count ||
      !agree(directory.offset, wide.offset, kSaturated) ||
      !agree(directory.size, wide.size, kSaturated) ||
      !agree(directory.count, wide.count, 0xffff)) {
    Fail(at, "the zip64 end record disagrees with the end record");
  }
  directory = wide;
}

ZipReader::Record ZipReader::ReadRecord(uint64_t& at, uint64_t end) const {
  if (end - at < kCentralSize || LoadLittle<uint32_t>(bytes_, at) != kCentralMagic) {
    Fail(at, "found no directory entry where one is due");
  }
  const auto flags = LoadLittle<uint16_t>(bytes_, at + 8);
  const size_t name_size = LoadLittle<uint16_t>(bytes_, at + 28);
  const size_t extra_size = LoadLittle<uint16_t>(bytes_, at + 30);
  const size_t comment_size = LoadLittle<uint16_t>(bytes_, at + 32);
  const uint64_t whole = kCentralSize + name_size + extra_size + comment_size;
  if (whole > end - at) Fail(at, "a directory entry runs past the directory");
  Record record = {.name = Text(bytes_.subspan(at + kCentralSize, name_size)),
                   .size = LoadLittle<uint32_t>(bytes_, at + 24),
                   .stored_size = LoadLittle<uint32_t>(bytes_, at + 20),
                   .local = LoadLittle<uint32_t>(bytes_, at + 42),
                   .method = LoadLittle<uint16_t>(bytes_, at + 10)};
  if (LoadLittle<uint16_t>(bytes_, at + 34) != 0) {
    Fail(at, "the zip is split over several files; join them first");
  }
  ReadZip64Extra(bytes_.subspan(at + kCentralSize + name_size, extra_size), record);
  if ((flags & 1) != 0) Fail(at, fmt::format("entry {} is encrypted", Quoted(record.name)));
  if (record.method == 0 && record.size != record.stored_size) {
    Fail(at, fmt::format("entry {} is said to be of {} and of {} bytes", Quoted(record.name),
                         record.size, record.stored_size));
  }
  at += whole;
  return record;
}

void ZipReader::ReadZip64Extra(std::span<const std::byte> extra, Record& record) const {
  const auto wide = [](uint64_t field) { return field == kSaturated; };
  if (!wide(record.size) && !wide(record.stored_size) && !wide(record.local)) return;
  while (extra.size() >= 4) {
    const auto id = LoadLittle<uint16_t>(extra);
    const size_t size = LoadLittle<uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    std::span<const std::byte> body = extra.subspan(4, size);
    extra = extra.subspan(4 + size);
    if (id != 1) continue;
    for (uint64_t* field : {&record.size, &record.stored_size, &record.local}) {
      if (!wide(*field) || body.size() < 8) continue;
      *field = LoadLittle<uint64_t>(body);
      body = body.subspan(8);
    }
    return;
  }
}

uint64_t ZipReader::DataOffset(const Record& record) const {
  const uint64_t at = record.local;
  if (at > bytes_.size() || bytes_.size() - at < kLocalSize ||
      LoadLittle<uint32_t>(bytes_, at) != kLocalMagic) {
    Fail(at, fmt::format("found no header of entry {}", Quoted(record.name)));
  }
  const size_t name_size = LoadLittle<uint16_t>(bytes_, at + 26);
  const size_t extra_size = LoadLittle<uint16_t>(bytes_, at + 28);
  const uint64_t data = at + kLocalSize + name_size + extra_size;
  if (data > bytes_.size() || Text(bytes_.subspan(at + kLocalSize, name_size)) != record.name) {
    Fail(at, fmt::format("the header of entry {} has another name", Quoted(record.name)));
  }
  return data;
}

void ZipReader::CheckOverlaps(std::vector<std::pair<uint64_t, uint64_t>> ranges) const {
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      Fail(ranges[i].first, "two entries overlap");
    }
  }
}

void ZipReader::Fail(uint64_t offset, const std::string& what) const {
  throw Error("{}, byte {}: {}", place_, offset, what);
}

}  // namespace kibitz::io
