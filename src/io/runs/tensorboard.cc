#include "io/runs/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "io/bytes/crc32c.h"

namespace kibitz::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "brain.Event:2";
constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::string_view kSuffix = ".kibitz";
constexpr size_t kHeaderBytes = 12;  // Length, checksum of the length.
constexpr size_t kTrailerBytes = 4;  // Checksum of the data.

// Protocol-buffer wire types.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <typename T>
void PutFixed(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

template <typename T>
T GetFixed(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutKey(std::string& out, uint64_t field, Wire wire) { PutVarint(out, field << 3 | wire); }

void PutBytes(std::string& out, uint64_t field, std::string_view bytes) {
  PutKey(out, field, kBytes);
  PutVarint(out, bytes.size());
  out += bytes;
}

std::string EventHead(int64_t step, double wall_time) {
  std::string event;
  PutKey(event, 1, kFixed64);
  PutFixed(event, wall_time);
  PutKey(event, 2, kVarint);
  PutVarint(event, static_cast<uint64_t>(step));
  return event;
}

// One field of a message.
struct Field {
  uint64_t number = 0;
  uint64_t wire = 0;
  uint64_t value = 0;      // Of varints and fixed numbers.
  std::string_view bytes;  // Of the rest.
};

bool GetVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Takes the next field off `in`; false when the bytes are not a message.
bool GetField(std::string_view& in, Field& field) {
  uint64_t key = 0;
  if (!GetVarint(in, key)) return false;
  field.number = key >> 3;
  field.wire = key & 7;
  uint64_t size = 0;
  switch (field.wire) {
    case kVarint:
      return GetVarint(in, field.value);
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      if (!GetVarint(in, size)) return false;
      break;
    default:
      return false;
  }
  if (size > in.size()) return false;
  field.bytes = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}

// Summary.Value: tag = 1, simple_value = 2. False when malformed.
bool ParseValue(std::string_view in, std::vector<Scalar>& out) {
  Scalar scalar;
  bool simple = false;
  Field field;
  while (!in.empty()) {
    if (!GetField(in, field)) return false;
    if (field.number == 1 && field.wire == kBytes) scalar.tag = field.bytes;
    if (field.number == 2 && field.wire == kFixed32) {
      scalar.value = GetFixed<float>(field.bytes);
      simple = true;
    }
  }
  if (simple) out.push_back(std::move(scalar));
  return true;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view version;
  std::vector<Scalar> scalars;
};

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5. Summary: value = 1, repeated.
bool ParseEvent(std::string_view in, Event& event) {
  Field field;
  while (!in.empty()) {
    if (!GetField(in, field)) return false;
    if (field.number == 1 && field.wire == kFixed64)
      event.wall_time = GetFixed<double>(field.bytes);
    if (field.number == 2 && field.wire == kVarint) event.step = static_cast<int64_t>(field.value);
    if (field.number == 3 && field.wire == kBytes) event.version = field.bytes;
    if (field.number != 5 || field.wire != kBytes) continue;
    std::string_view summary = field.bytes;
    while (!summary.empty()) {
      Field value;
      if (!GetField(summary, value)) return false;
      if (value.number != 1 || value.wire != kBytes) continue;
      if (!ParseValue(value.bytes, event.scalars)) return false;
    }
  }
  for (Scalar& scalar : event.scalars) {
    scalar.step = event.step;
    scalar.wall_time = event.wall_time;
  }
  return true;
}

enum class Record { kGood, kEnd, kTorn, kBad };

// Reads the record at `offset` and moves the offset behind it.
Record ReadRecord(std::string_view file, size_t& offset, std::string_view& data) {
  const std::string_view rest = file.substr(offset);
  if (rest.empty()) return Record::kEnd;
  if (rest.size() < kHeaderBytes) return Record::kTorn;
  if (GetFixed<uint32_t>(rest.substr(8)) != MaskedCrc(Crc32c(rest.substr(0, 8)))) {
    return Record::kBad;
  }
  const auto length = GetFixed<uint64_t>(rest);
  const size_t room = rest.size() - kHeaderBytes;
  if (length > room || room - length < kTrailerBytes) return Record::kTorn;
  data = rest.substr(kHeaderBytes, length);
  if (GetFixed<uint32_t>(rest.substr(kHeaderBytes + length)) != MaskedCrc(Crc32c(data))) {
    return Record::kBad;
  }
  offset += kHeaderBytes + length + kTrailerBytes;
  return Record::kGood;
}

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Bytes of the file up to the first record that is torn, bad or later than `last_step`.
size_t GoodBytes(const std::string& path, int64_t last_step) {
  const auto file = MappedFile::Open(path);
  const std::string_view bytes = TextOf(*file);
  size_t good = 0;
  while (true) {
    size_t offset = good;
    std::string_view data;
    const Record record = ReadRecord(bytes, offset, data);
    Event event;
    if (record == Record::kEnd) return good;
    if (record != Record::kGood || !ParseEvent(data, event)) {
      LogWarn("{}: the record at byte {} is damaged; cut off there ({} bytes)", path, good,
              bytes.size() - good);
      return good;
    }
    if (event.step > last_step) return good;
    good = offset;
  }
}

// Our newest file in the folder, or "".
std::string NewestFile(const std::string& folder) {
  std::string newest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) {
      newest = std::max(newest, entry.path().string());
    }
  }
  return newest;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::string& folder, const TensorBoardOptions& options) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error("cannot create folder {}: {}", folder, error.message());
  path_ = NewestFile(folder);
  size_t good = 0;
  if (path_.empty()) {
    const auto seconds = static_cast<int64_t>(options.wall_time);
    path_ = fmt::format("{}/{}{:010}{}", folder, kPrefix, seconds, kSuffix);
  } else {
    good = GoodBytes(path_, options.resume_step.value_or(std::numeric_limits<int64_t>::max()));
  }
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error::System("cannot write " + path_);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw Error("{} is being written by another process; wait for it or choose another folder",
                path_);
  }
  if (ftruncate(descriptor_, static_cast<off_t>(good)) != 0) {
    close(descriptor_);
    throw Error::System("cannot cut " + path_);
  }
  if (good > 0) return;
  std::string event = EventHead(0, options.wall_time);
  PutBytes(event, 3, kVersion);
  WriteRecord(event);
}

TensorBoardWriter::~TensorBoardWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void TensorBoardWriter::Write(int64_t step, double wall_time, const Values& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    std::string item;
    PutBytes(item, 1, tag);
    PutKey(item, 2, kFixed32);
    PutFixed(item, static_cast<float>(value));
    PutBytes(summary, 1, item);
  }
  std::string event = EventHead(step, wall_time);
  PutBytes(event, 5, summary);
  WriteRecord(event);
}

void TensorBoardWriter::WriteRecord(std::string_view event) {
  std::string record;
  PutFixed(record, uint64_t{event.size()});
  PutFixed(record, MaskedCrc(Crc32c(record)));
  record += event;
  PutFixed(record, MaskedCrc(Crc32c(event)));
  std::string_view left = record;
  while (!left.empty()) {
    const ssize_t written = write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::System("cannot write " + path_);
    left.remove_prefix(static_cast<size_t>(written));
  }
}

ScalarReader::ScalarReader(const std::string& path) : file_(MappedFile::Open(path)) {
  std::string_view data;
  Event event;
  const bool good = ReadRecord(TextOf(*file_), offset_, data) == Record::kGood &&
                    ParseEvent(data, event) && event.version.starts_with("brain.Event:");
  if (!good) {
    throw Error("{}: is not a TensorBoard event file: it must start with a record that holds {}",
                path, Quoted(kVersion));
  }
}

std::optional<Scalar> ScalarReader::Next() {
  while (pending_.empty()) {
    const size_t start = offset_;
    std::string_view data;
    const Record record = ReadRecord(TextOf(*file_), offset_, data);
    if (record == Record::kTorn) torn_ = true;
    if (record == Record::kEnd || record == Record::kTorn) return std::nullopt;
    Event event;
    if (record == Record::kBad || !ParseEvent(data, event)) {
      throw Error("{}, byte {}: the event record is damaged ({}); what comes before it is good",
                  file_->path(), start,
                  record == Record::kBad ? "checksum" : "no protocol-buffer event");
    }
    pending_ = std::move(event.scalars);
    std::reverse(pending_.begin(), pending_.end());
  }
  Scalar scalar = std::move(pending_.back());
  pending_.pop_back();
  return scalar;
}

}  // namespace kibitz::io
