#include "io/bytes/byte_ranges.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"

namespace kibitz::io {
namespace {

constexpr uint32_t kFrameMagic = 0xfd2fb528;
constexpr uint32_t kSkippedMagic = 0x184d2a50;  // And the next 15.
// A longer frame is not walked to its end, which takes a read for each of its blocks.
constexpr uint64_t kMaxFrameBytes = uint64_t{256} << 20;

class RangeFile {
 public:
  explicit RangeFile(const std::string& path) : path_(path) {
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) {
      if (descriptor_ >= 0) close(descriptor_);
      throw Error::System("cannot read " + path);
    }
    bytes_ = static_cast<uint64_t>(info.st_size);
  }
  ~RangeFile() { close(descriptor_); }
  RangeFile(const RangeFile&) = delete;
  RangeFile& operator=(const RangeFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  size_t ReadAt(uint64_t offset, char* buffer, size_t size) const {
    while (true) {
      const ssize_t count = pread(descriptor_, buffer, size, static_cast<off_t>(offset));
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw Error::System("cannot read " + path_);
    }
  }
  // A number of at most four bytes; nothing behind the end.
  std::optional<uint32_t> NumberAt(uint64_t offset, size_t size) const {
    std::array<unsigned char, 4> bytes{};
    if (ReadAt(offset, reinterpret_cast<char*>(bytes.data()), size) != size) return std::nullopt;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) number |= uint32_t{bytes[i]} << (8 * i);
    return number;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
};

bool IsSkippableMagic(uint32_t magic) { return (magic & ~0xfU) == kSkippedMagic; }

bool IsZstd(const RangeFile& file) {
  const uint32_t magic = file.NumberAt(0, 4).value_or(0);
  return magic == kFrameMagic || IsSkippableMagic(magic);
}

// Where the blocks of a zstd frame begin.
std::optional<uint64_t> BlocksOf(const RangeFile& file, uint64_t frame, bool& checksum) {
  const auto descriptor = file.NumberAt(frame + 4, 1);
  if (!descriptor) return std::nullopt;
  constexpr std::array<uint64_t, 4> kIdBytes = {0, 1, 2, 4};
  constexpr std::array<uint64_t, 4> kSizeBytes = {0, 2, 4, 8};
  const bool single = (*descriptor & 0x20) != 0;
  const uint64_t size_bytes = *descriptor >> 6 == 0 && single ? 1 : kSizeBytes[*descriptor >> 6];
  checksum = (*descriptor & 4) != 0;
  return frame + 5 + (single ? 0 : 1) + kIdBytes[*descriptor & 3] + size_bytes;
}

// The offset behind the zstd frame that begins at `frame`. Empty when no whole frame begins there.
std::optional<uint64_t> EndOfFrame(const RangeFile& file, uint64_t frame) {
  const auto magic = file.NumberAt(frame, 4);
  if (!magic) return std::nullopt;
  if (IsSkippableMagic(*magic)) {
    const auto size = file.NumberAt(frame + 4, 4);
    if (!size || frame + 8 + *size > file.bytes()) return std::nullopt;
    return frame + 8 + *size;
  }
  bool checksum = false;
  const auto blocks = *magic == kFrameMagic ? BlocksOf(file, frame, checksum) : std::nullopt;
  if (!blocks) return std::nullopt;
  for (uint64_t at = *blocks; at - frame <= kMaxFrameBytes;) {
    const auto head = file.NumberAt(at, 3);
    const uint32_t kind = head ? *head >> 1 & 3 : 3;
    if (kind == 3) return std::nullopt;
    at += 3 + (kind == 1 ? 1 : *head >> 3);  // A run has one byte for all.
    if (at > file.bytes()) return std::nullopt;
    if ((*head & 1) != 0) return at + (checksum ? 4 : 0);
  }
  return std::nullopt;
}

// pzstd writes the size of each frame in front of it.
std::optional<uint64_t> EndByHint(const RangeFile& file, uint64_t hint, uint64_t frame) {
  if (frame - hint != 12 || file.NumberAt(hint, 4) != kSkippedMagic) return std::nullopt;
  const auto size = file.NumberAt(hint + 8, 4);
  if (!size || *size == 0 || frame + *size > file.bytes()) return std::nullopt;
  const auto next = file.NumberAt(frame + *size, 4);
  const bool fits =
      frame + *size == file.bytes() || (next && (*next == kFrameMagic || IsSkippableMagic(*next)));
  return fits ? std::optional(frame + *size) : std::nullopt;
}

// Where zstd frames begin, `min_bytes` apart; the first counts from the start of the file.
std::vector<uint64_t> FramesOf(const RangeFile& file, uint64_t min_bytes) {
  std::vector<uint64_t> begins;
  uint64_t before = 0;
  for (uint64_t at = 0; at < file.bytes();) {
    const bool frame = file.NumberAt(at, 4) == kFrameMagic;
    if (begins.empty() && frame) {
      begins.push_back(0);
    } else if (frame && at - begins.back() >= min_bytes) {
      begins.push_back(at);
    }
    auto end = frame ? EndByHint(file, before, at) : std::nullopt;
    if (!end) end = EndOfFrame(file, at);
    if (!end) break;
    before = at;
    at = *end;
  }
  if (begins.empty()) begins.push_back(0);  // Skipped frames alone.
  return begins;
}

// Packed bytes of a part of a file.
class RangeSource : public ByteSource {
 public:
  RangeSource(const std::string& path, const ByteRange& range)
      : file_(path),
        range_(range),
        name_(range.begin == 0 ? path : fmt::format("{}, from byte {}", path, range.begin)) {}

  size_t Read(char* buffer, size_t size) override {
    const uint64_t at = range_.begin + position_;
    const size_t count =
        file_.ReadAt(at, buffer, std::min<uint64_t>(size, range_.end - std::min(at, range_.end)));
    position_ += count;
    return count;
  }
  uint64_t Position() const override { return position_; }
  const std::string& name() const override { return name_; }

 private:
  RangeFile file_;
  ByteRange range_;
  std::string name_;
  std::atomic<uint64_t> position_ = 0;
};

class RangeLines : public ByteSource {
 public:
  RangeLines(std::string path, const ByteRange& range, const ByteSourceOptions& options)
      : path_(std::move(path)),
        range_(range),
        options_(options),
        source_(Open(range)),
        begun_(range.begin == 0) {}

  size_t Read(char* buffer, size_t size) override {
    while (!ended_ && size > 0) {
      size_t count = source_->Read(buffer, size);
      if (count == 0) {
        NextSource();
        continue;
      }
      if (behind_) {
        const void* end = std::memchr(buffer, '\n', count);
        ended_ = end != nullptr;
        return ended_ ? static_cast<size_t>(static_cast<const char*>(end) - buffer) + 1 : count;
      }
      if (!begun_) count = WithoutFirst(buffer, count);
      if (count > 0) return count;
    }
    return 0;
  }
  uint64_t Position() const override { return source_->Position(); }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> Open(const ByteRange& range) const {
    auto source = std::make_unique<RangeSource>(path_, range);
    // A range of plain text may begin with what looks like the start of a packed file.
    if (range.begin > 0 && !IsZstd(RangeFile(path_))) return source;
    return Unpacked(std::move(source), options_);
  }
  // Drops the end of the line that belongs to the range before.
  size_t WithoutFirst(char* buffer, size_t count) {
    char* end = static_cast<char*>(std::memchr(buffer, '\n', count));
    if (end == nullptr) return 0;
    begun_ = true;
    const auto left = static_cast<size_t>(buffer + count - (end + 1));
    std::memmove(buffer, end + 1, left);
    return left;
  }
  // The line at the end goes on behind the range; the next range leaves it out.
  void NextSource() {
    ended_ = behind_ || !begun_;
    if (ended_) return;
    behind_ = true;
    const ByteRange rest = {range_.end, std::numeric_limits<uint64_t>::max()};
    if (RangeFile(path_).bytes() <= rest.begin) {
      ended_ = true;
      return;
    }
    source_ = Open(rest);
  }

  std::string path_;
  ByteRange range_;
  ByteSourceOptions options_;
  std::unique_ptr<ByteSource> source_;
  bool begun_;           // At a line of ours.
  bool behind_ = false;  // In the line that goes on behind the range.
  bool ended_ = false;
};

}  // namespace

std::vector<ByteRange> CutBytes(const std::string& path, uint64_t min_bytes) {
  const RangeFile file(path);
  min_bytes = std::max<uint64_t>(min_bytes, 1);
  const uint32_t magic = file.NumberAt(0, 4).value_or(0);
  std::vector<uint64_t> begins = {0};
  if (IsZstd(file)) {
    begins = FramesOf(file, min_bytes);
  } else if ((magic & 0xffff) != 0x8b1f && (magic & 0xff) != 0x78) {  // Gzip, zlib.
    for (uint64_t at = min_bytes; at < file.bytes(); at += min_bytes) begins.push_back(at);
  }
  std::vector<ByteRange> ranges;
  for (const uint64_t begin : begins) {
    if (ranges.empty()) {
      ranges.push_back({0, file.bytes()});
    } else if (begin - ranges.back().begin >= min_bytes) {
      ranges.back().end = begin;
      ranges.push_back({begin, file.bytes()});
    }
  }
  return ranges;
}

std::unique_ptr<ByteSource> LinesIn(const std::string& path, const ByteRange& range,
                                    const ByteSourceOptions& options) {
  return std::make_unique<RangeLines>(path, range, options);
}

}  // namespace kibitz::io
