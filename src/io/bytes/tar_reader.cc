#include "io/bytes/tar_reader.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kStep = 1 << 20;       // Read at a time.
constexpr uint64_t kMaxNote = 1 << 20;  // The longest name or pax header.
constexpr size_t kSumAt = 148;          // The checksum's place in a header,
constexpr size_t kSumSize = 8;          // which counts as spaces.
constexpr size_t kSizeAt = 124;
constexpr size_t kNumberSize = 12;
constexpr size_t kKindAt = 156;
constexpr size_t kPrefixAt = 345;

// A text that ends at the first zero.
std::string_view TextAt(std::string_view header, size_t at, size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces and zeros, or base 256 where the first bit is set (GNU, from 8 GB).
std::optional<uint64_t> NumberAt(std::string_view header, size_t at, size_t size) {
  const std::string_view field = header.substr(at, size);
  uint64_t value = 0;
  if ((field[0] & 0x80) != 0) {
    for (size_t i = size - 8; i < size; ++i) {
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value >> 62 == 0 ? std::optional(value) : std::nullopt;
  }
  const std::string_view digits = Trim(field.substr(0, field.find('\0')));
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;
}

bool SumIsRight(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool in_sum = i >= kSumAt && i < kSumAt + kSumSize;
    sum += in_sum ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return NumberAt(header, kSumAt, kSumSize) == sum;
}

// "27 path=some/long/name\n" among the records of a pax header; the last one counts.
std::string PaxPath(std::string_view note) {
  std::string path;
  while (!note.empty()) {
    const auto length = ParseUnsigned(note.substr(0, note.find(' ')));
    if (!length || *length == 0 || *length > note.size()) break;
    const std::string_view record = note.substr(0, *length);
    const size_t key = record.find(' ') + 1;
    if (record.substr(key).starts_with("path=")) {
      path = std::string(Trim(record.substr(key + 5)));
    }
    note.remove_prefix(*length);
  }
  return path;
}

}  // namespace

bool LooksLikeTar(std::string_view head) {
  return head.size() >= kBlock && head[0] != '\0' && SumIsRight(head);
}

TarReader::TarReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

bool TarReader::ReadWhole(char* buffer, size_t size) {
  size_t have = 0;
  while (have < size) {
    const size_t got = source_->Read(buffer + have, size - have);
    if (got == 0) break;
    have += got;
  }
  offset_ += have;
  if (have == size) return true;
  if (have == 0) return false;
  throw Error("{}, byte {}: the archive ends in the middle; it was cut short, fetch it again",
              name(), offset_);
}

void TarReader::Pass() {
  std::vector<char> buffer(std::min<uint64_t>(left_ + pad_, kStep));
  while (left_ + pad_ > 0) {
    const size_t some = std::min<uint64_t>(left_ + pad_, buffer.size());
    if (!ReadWhole(buffer.data(), some)) {
      throw Error("{}, byte {}: the archive ends inside a file; it was cut short, fetch it again",
                  name(), offset_);
    }
    const uint64_t of_file = std::min<uint64_t>(left_, some);
    left_ -= of_file;
    pad_ -= some - of_file;
  }
}

size_t TarReader::Read(char* buffer, size_t size) {
  const size_t some = std::min<uint64_t>(left_, size);
  if (some == 0) return 0;
  const size_t got = source_->Read(buffer, some);
  if (got == 0) {
    throw Error("{}, byte {}: the archive ends inside a file; it was cut short, fetch it again",
                name(), offset_);
  }
  offset_ += got;
  left_ -= got;
  return got;
}

std::string TarReader::ReadAll() {
  std::string content;
  while (left_ > 0) {
    const size_t begin = content.size();
    content.resize(begin + std::min<uint64_t>(left_, kStep));
    content.resize(begin + Read(content.data() + begin, content.size() - begin));
  }
  return content;
}

std::string TarReader::ReadNote(uint64_t size) {
  if (size > kMaxNote) {
    throw Error("{}, byte {}: a name of {} bytes, expected at most {}: the archive is damaged",
                name(), offset_, size, kMaxNote);
  }
  std::string note = ReadAll();
  Pass();
  return note;
}

std::optional<TarEntry> TarReader::Next() {
  Pass();
  std::string long_name;
  std::array<char, kBlock> block{};
  while (true) {
    if (!ReadWhole(block.data(), block.size())) return std::nullopt;
    const std::string_view header(block.data(), block.size());
    // An archive ends with two blocks of zeros, and may be padded by more.
    if (std::ranges::all_of(header, [](char byte) { return byte == '\0'; })) continue;
    const std::optional<uint64_t> size = NumberAt(header, kSizeAt, kNumberSize);
    if (!SumIsRight(header) || !size) {
      throw Error("{}, byte {}: no header of a tar archive; the archive is damaged", name(),
                  offset_ - kBlock);
    }
    const char kind = header[kKindAt];
    left_ = *size;
    pad_ = (kBlock - *size % kBlock) % kBlock;
    if (kind == 'L') {
      const std::string note = ReadNote(*size);
      long_name = note.substr(0, note.find('\0'));
    } else if (kind == 'x') {
      const std::string path = PaxPath(ReadNote(*size));
      if (!path.empty()) long_name = path;
    } else if (kind == '0' || kind == '\0' || kind == '7') {
      TarEntry entry{.name = long_name, .size = *size};
      if (!entry.name.empty()) return entry;
      const bool ustar = header.substr(257, 5) == "ustar" && header[262] == '\0';
      const std::string_view prefix = ustar ? TextAt(header, kPrefixAt, 155) : "";
      entry.name = fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", TextAt(header, 0, 100));
      return entry;
    } else {
      if (kind != 'g') long_name.clear();
      if (kind >= '1' && kind <= '6') left_ = pad_ = 0;  // Links and folders have no content.
      Pass();
    }
  }
}

}  // namespace kibitz::io
