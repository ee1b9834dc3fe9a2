#include "io/bytes/byte_sink.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"

namespace kibitz::io {
namespace {

constexpr size_t kOutputBytes = 128 << 10;

void CheckLevel(const std::string& path, int level, int max) {
  if (level < 0 || level > max) {
    throw Error::Usage("{}: level {} for packing, expected 1 to {} (0: the default)", path, level,
                       max);
  }
}

}  // namespace

class ByteSink::Packer {
 public:
  explicit Packer(const std::string& path) : file_(path) {}
  virtual ~Packer() = default;

  virtual void Write(std::string_view bytes) { file_.Write(bytes); }
  virtual void Finish() {}

  void Commit() {
    Finish();
    file_.Commit();
  }

 protected:
  AtomicFile file_;
};

namespace {

class GzipPacker : public ByteSink::Packer {
 public:
  GzipPacker(const std::string& path, int level) : Packer(path), buffer_(kOutputBytes) {
    const int code = deflateInit2(&stream_, level == 0 ? Z_DEFAULT_COMPRESSION : level, Z_DEFLATED,
                                  15 + 16, 9, Z_DEFAULT_STRATEGY);
    if (code != Z_OK) throw Error("zlib: out of memory");
  }
  ~GzipPacker() override { deflateEnd(&stream_); }
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

  void Write(std::string_view bytes) override {
    constexpr size_t kMax = 1 << 30;
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kMax);
      Deflate(piece, Z_NO_FLUSH);
      bytes.remove_prefix(piece.size());
    }
  }
  void Finish() override { Deflate({}, Z_FINISH); }

 private:
  void Deflate(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);  // Cannot fail while there is room.
      file_.Write({buffer_.data(), buffer_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  z_stream stream_ = {};
  std::vector<char> buffer_;
};

class ZstdPacker : public ByteSink::Packer {
 public:
  ZstdPacker(const std::string& path, const ByteSinkOptions& options)
      : Packer(path), context_(ZSTD_createCCtx()), buffer_(kOutputBytes) {
    if (context_ == nullptr) throw Error("zstd: out of memory");
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel,
                           options.level == 0 ? ZSTD_CLEVEL_DEFAULT : options.level);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    // A library built without threads refuses this and packs on the caller's.
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, std::max(0, options.threads));
  }

  void Write(std::string_view bytes) override { Compress(bytes, ZSTD_e_continue); }
  void Finish() override { Compress({}, ZSTD_e_end); }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  void Compress(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
    size_t left = 0;
    do {
      ZSTD_outBuffer out = {buffer_.data(), buffer_.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0) throw Error("zstd: {}", ZSTD_getErrorName(left));
      file_.Write({buffer_.data(), out.pos});
    } while (directive == ZSTD_e_end ? left > 0 : in.pos < in.size);
  }

  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<char> buffer_;
};

std::unique_ptr<ByteSink::Packer> MakePacker(const std::string& path,
                                             const ByteSinkOptions& options) {
  if (path.ends_with(".gz")) {
    CheckLevel(path, options.level, 9);
    return std::make_unique<GzipPacker>(path, options.level);
  }
  if (path.ends_with(".zst")) {
    CheckLevel(path, options.level, ZSTD_maxCLevel());
    return std::make_unique<ZstdPacker>(path, options);
  }
  return std::make_unique<ByteSink::Packer>(path);
}

}  // namespace

ByteSink::ByteSink(const std::string& path, const ByteSinkOptions& options)
    : packer_(MakePacker(path, options)) {}

ByteSink::~ByteSink() = default;

void ByteSink::Write(std::string_view bytes) {
  packer_->Write(bytes);
  size_ += bytes.size();
}

void ByteSink::Commit() { packer_->Commit(); }

}  // namespace kibitz::io
