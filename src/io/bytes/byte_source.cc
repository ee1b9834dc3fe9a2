#include "io/bytes/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

#ifdef KIBITZ_SMALL_BUFFERS  // In fuzz targets, whose short inputs are to cross a buffer's end.
constexpr size_t kInputBytes = 256;
#else
constexpr size_t kInputBytes = 128 << 10;
#endif
constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kChunks = 4;
constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kMaxWindow = uint64_t{1} << 31;  // zstd allows no more.

class FileSource : public ByteSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw Error::System("cannot read " + path_);
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);  // A hint: pipes refuse it.
  }
  ~FileSource() override { close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  size_t Read(char* buffer, size_t size) override {
    while (true) {
      const ssize_t count = read(descriptor_, buffer, size);
      if (count >= 0) {
        position_ += static_cast<uint64_t>(count);
        return static_cast<size_t>(count);
      }
      if (errno != EINTR) throw Error::System("cannot read " + path_);
    }
  }
  uint64_t Position() const override { return position_; }
  const std::string& name() const override { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::atomic<uint64_t> position_ = 0;
};

class MemorySource : public ByteSource {
 public:
  MemorySource(std::string bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  size_t Read(char* buffer, size_t size) override {
    const size_t count = bytes_.copy(buffer, size, position_);
    position_ += count;
    return count;
  }
  uint64_t Position() const override { return position_; }
  const std::string& name() const override { return name_; }

 private:
  std::string bytes_;
  std::string name_;
  std::atomic<size_t> position_ = 0;
};

// The packed bytes in pieces, with a look ahead and the offset of the next byte.
class Input {
 public:
  explicit Input(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), buffer_(kInputBytes) {}

  std::string_view available() const { return {buffer_.data() + begin_, end_ - begin_}; }
  uint64_t offset() const { return offset_; }
  const ByteSource& source() const { return *source_; }
  const std::string& name() const { return source_->name(); }

  // Tries to have `count` bytes available, a few dozen at most; false when the file ends before.
  bool Have(size_t count) {
    if (end_ - begin_ >= count) return true;
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < count) {
      const size_t got = source_->Read(buffer_.data() + end_, buffer_.size() - end_);
      if (got == 0) return false;
      end_ += got;
    }
    return true;
  }
  void Take(size_t count) {
    begin_ += count;
    offset_ += count;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;  // In the file, of the byte at begin_.
};

class UnpackingSource : public ByteSource {
 public:
  explicit UnpackingSource(Input input) : input_(std::move(input)) {}
  uint64_t Position() const override { return input_.source().Position(); }
  const std::string& name() const override { return input_.name(); }

 protected:
  Error Broken(std::string_view reason) const {
    return Error("{}, byte {}: {}", name(), input_.offset(), reason);
  }
  Error CutShort(std::string_view what) const {
    return Broken(fmt::format("the file ends inside a {}; it was cut short, fetch it again", what));
  }

  Input input_;
};

class PlainSource : public UnpackingSource {
 public:
  using UnpackingSource::UnpackingSource;

  size_t Read(char* buffer, size_t size) override {
    if (!input_.Have(1)) return 0;
    const size_t count = input_.available().copy(buffer, size);
    input_.Take(count);
    return count;
  }
};

constexpr std::string_view kGzipMagic = "\x1f\x8b";

class GzipSource : public UnpackingSource {
 public:
  explicit GzipSource(Input input) : UnpackingSource(std::move(input)) {
    gzip_ = input_.available().starts_with(kGzipMagic);
    if (inflateInit2(&stream_, gzip_ ? 15 + 16 : 15) != Z_OK) throw Error("zlib: out of memory");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  size_t Read(char* buffer, size_t size) override {
    if (failure_) throw *failure_;
    size_t made = 0;
    while (made == 0 && size > 0 && !finished_) made = Inflate(buffer, size);
    return made;
  }

 private:
  size_t Inflate(char* buffer, size_t size) {
    const bool more = input_.Have(1);
    const std::string_view in = input_.available();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    const auto room = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    input_.Take(in.size() - stream_.avail_in);
    const size_t made = room - stream_.avail_out;
    if (code == Z_STREAM_END) {
      EndMember();
    } else if (code == Z_BUF_ERROR && !more && made == 0) {
      failure_ = CutShort(gzip_ ? "gzip member" : "zlib stream");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      const std::string_view reason = stream_.msg != nullptr ? stream_.msg : "needs a dictionary";
      failure_ = Broken(fmt::format("broken {} data ({}); fetch or write the file again",
                                    gzip_ ? "gzip" : "zlib", reason));
    }
    if (failure_ && made == 0) throw *failure_;
    return made;
  }

  // Another member, or the end; zeros after the end are what tapes and disks pad with.
  void EndMember() {
    if (gzip_ && input_.Have(kGzipMagic.size()) && input_.available().starts_with(kGzipMagic)) {
      inflateReset(&stream_);
      return;
    }
    while (gzip_ && input_.Have(1) && input_.available().front() == '\0') input_.Take(1);
    if (input_.Have(1)) {
      failure_ = Broken("bytes after the end of the packed data; the file is damaged or joined");
    }
    finished_ = true;
  }

  z_stream stream_ = {};
  bool gzip_ = true;
  bool finished_ = false;
  std::optional<Error> failure_;  // Thrown after the bytes before it were returned.
};

constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr size_t kFrameHeaderBytes = 18;  // At most.

bool IsSkippable(std::string_view head) {
  return head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18";
}

// The window a frame header asks for, in bytes; nothing when the header is not whole.
std::optional<uint64_t> WindowOf(std::string_view head) {
  if (!head.starts_with(kZstdMagic) || head.size() < 6) return std::nullopt;
  const auto descriptor = static_cast<uint8_t>(head[4]);
  if ((descriptor & 0x20) == 0) {
    const auto window = static_cast<uint8_t>(head[5]);
    const uint64_t base = uint64_t{1} << (10 + (window >> 3));
    return base + base / 8 * (window & 7);
  }
  // A single segment: the window is the content, whose size follows the dictionary id.
  constexpr std::array<size_t, 4> kIdBytes = {0, 1, 2, 4};
  const size_t start = 5 + kIdBytes[descriptor & 3];
  const size_t bytes = size_t{1} << (descriptor >> 6);
  if (head.size() < start + bytes) return std::nullopt;
  uint64_t size = 0;
  for (size_t i = 0; i < bytes; ++i) {
    size |= static_cast<uint64_t>(static_cast<uint8_t>(head[start + i])) << (8 * i);
  }
  return bytes == 2 ? size + 256 : size;
}

class ZstdSource : public UnpackingSource {
 public:
  ZstdSource(Input input, uint64_t max_window)
      : UnpackingSource(std::move(input)), max_window_(max_window) {
    context_.reset(ZSTD_createDCtx());
    if (context_ == nullptr) throw Error("zstd: out of memory");
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax,
                           static_cast<int>(std::bit_width(std::bit_ceil(max_window))) - 1);
  }

  size_t Read(char* buffer, size_t size) override {
    ZSTD_outBuffer out = {buffer, size, 0};
    while (out.pos == 0 && size > 0) {
      if (!in_frame_ && !StartFrame()) return 0;
      const bool more = input_.Have(1);
      const std::string_view available = input_.available();
      ZSTD_inBuffer in = {available.data(), available.size(), 0};
      const size_t code = ZSTD_decompressStream(context_.get(), &out, &in);
      input_.Take(in.pos);
      if (ZSTD_isError(code) != 0) {
        throw Broken(fmt::format("broken zstd data ({}); fetch or write the file again",
                                 ZSTD_getErrorName(code)));
      }
      in_frame_ = code != 0;
      if (in_frame_ && !more && out.pos == 0) throw CutShort("zstd frame");
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  // False at the end of the file. Older formats of zstd would pass the library, so that the
  // magic is checked here.
  bool StartFrame() {
    if (!input_.Have(1)) return false;
    input_.Have(kFrameHeaderBytes);
    const std::string_view head = input_.available();
    if (head.size() < kZstdMagic.size()) throw CutShort("zstd frame");
    if (!head.starts_with(kZstdMagic) && !IsSkippable(head)) {
      throw Broken(fmt::format("found {}, expected a zstd frame; the file is damaged or joined",
                               Quoted(head.substr(0, kZstdMagic.size()))));
    }
    const auto window = WindowOf(head);
    if (window && *window > kMaxWindow) {
      throw Broken("the zstd frame asks for more than 2 GB at once; the file is damaged");
    }
    if (window && *window > max_window_) {
      throw Broken(fmt::format(
          "the zstd frame asks for a window of {} MB, {} MB are allowed; pack it again without "
          "--long or --ultra, or {}",
          *window / kMegabyte, max_window_ / kMegabyte, AllowHint("window", *window)));
    }
    in_frame_ = true;
    return true;
  }

  std::unique_ptr<ZSTD_DCtx, Free> context_;
  uint64_t max_window_;
  bool in_frame_ = false;
};

// Runs another source on a thread of its own, a few chunks ahead.
class ReadAhead : public ByteSource {
 public:
  explicit ReadAhead(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {
    for (size_t i = 0; i < kChunks; ++i) free_.push_back({std::vector<char>(kChunkBytes), 0});
    thread_ = std::thread([this] { Run(); });
  }
  ~ReadAhead() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  size_t Read(char* buffer, size_t size) override {
    if (used_ == current_.size && !NextChunk()) return 0;
    const size_t count = std::min(size, current_.size - used_);
    std::memcpy(buffer, current_.bytes.data() + used_, count);
    used_ += count;
    return count;
  }
  uint64_t Position() const override { return source_->Position(); }
  const std::string& name() const override { return source_->name(); }

 private:
  struct Chunk {
    std::vector<char> bytes;
    size_t size = 0;
  };

  // For the reader: false at the end; throws what the thread met.
  bool NextChunk() {
    std::unique_lock lock(mutex_);
    if (!current_.bytes.empty()) free_.push_back(std::exchange(current_, {}));
    used_ = 0;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !full_.empty() || ended_; });
    if (!full_.empty()) {
      current_ = std::move(full_.front());
      full_.pop_front();
      return true;
    }
    if (failure_) std::rethrow_exception(failure_);
    return false;
  }

  void Run() {
    while (true) {
      Chunk chunk;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !free_.empty() || stop_; });
        if (stop_) return;
        chunk = std::move(free_.front());
        free_.pop_front();
      }
      const bool more = Fill(chunk);
      {
        const std::lock_guard lock(mutex_);
        if (chunk.size > 0) full_.push_back(std::move(chunk));
        ended_ = !more;
      }
      changed_.notify_all();
      if (!more) return;
    }
  }

  // False when this chunk is the last.
  bool Fill(Chunk& chunk) {
    chunk.size = 0;
    try {
      while (chunk.size < chunk.bytes.size()) {
        const size_t got =
            source_->Read(chunk.bytes.data() + chunk.size, chunk.bytes.size() - chunk.size);
        if (got == 0) return false;
        chunk.size += got;
      }
      return true;
    } catch (...) {
      failure_ = std::current_exception();  // Read after `ended_` is seen, under the mutex.
      return false;
    }
  }

  std::unique_ptr<ByteSource> source_;  // The thread's, apart from Position() and name().
  Chunk current_;                       // The reader's, with used_.
  size_t used_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Chunk> free_;  // From here on guarded by mutex_.
  std::deque<Chunk> full_;
  std::exception_ptr failure_;
  bool ended_ = false;
  bool stop_ = false;
  std::thread thread_;
};

bool IsZlib(std::string_view head) {
  constexpr std::string_view kLevels = "\x01\x5e\x9c\xda";
  return head.size() >= 2 && head[0] == '\x78' && kLevels.find(head[1]) != std::string_view::npos;
}

std::unique_ptr<ByteSource> Recognised(Input input, const ByteSourceOptions& options) {
  input.Have(kZstdMagic.size());
  const std::string_view head = input.available();
  if (head.starts_with(kGzipMagic) || IsZlib(head)) {
    return std::make_unique<GzipSource>(std::move(input));
  }
  if (head.starts_with(kZstdMagic) || IsSkippable(head)) {
    return std::make_unique<ZstdSource>(std::move(input), options.max_window);
  }
  // Too short for any magic: the name says that something was there.
  const std::string_view name = input.name();
  if (head.size() < kZstdMagic.size() && (name.ends_with(".gz") || name.ends_with(".zst"))) {
    throw Error("{}: found {} bytes, expected packed data; the file was cut short, fetch it again",
                name, head.size());
  }
  return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace

std::unique_ptr<ByteSource> OpenBytes(const std::string& path, const ByteSourceOptions& options) {
  return Unpacked(std::make_unique<FileSource>(path), options);
}

std::unique_ptr<ByteSource> Unpacked(std::unique_ptr<ByteSource> packed,
                                     const ByteSourceOptions& options) {
  if (options.max_window < 1024 || options.max_window > kMaxWindow) {
    throw Error::Usage("--allow window={}: expected 1k to 2G", options.max_window);
  }
  auto source = Recognised(Input(std::move(packed)), options);
  const bool plain = dynamic_cast<PlainSource*>(source.get()) != nullptr;
  if (plain || !options.read_ahead) return source;
  return std::make_unique<ReadAhead>(std::move(source));
}

std::unique_ptr<ByteSource> MemoryBytes(std::string bytes, std::string name) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

std::function<size_t(char* buffer, size_t size)> ReadFunction(std::unique_ptr<ByteSource> source) {
  return [source = std::shared_ptr<ByteSource>(std::move(source))](char* buffer, size_t size) {
    return source->Read(buffer, size);
  };
}

}  // namespace kibitz::io
