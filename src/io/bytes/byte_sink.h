// Writing a file as a stream of bytes, packed as its ending says: .gz, .zst, anything else plain.
// The file appears under its name only at Commit().
//
//   ByteSink sink("selfplay/game0.jsonl.gz");
//   sink.Write(line);
//   sink.Commit();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kibitz::io {

struct ByteSinkOptions {
  // gzip 1 to 9, zstd 1 to 22; 0 is the library's choice (6 and 3).
  int level = 0;
  // Threads that pack beside the caller's; zstd only. The bytes are the same for any number
  // above 0, and a little longer than with none.
  int threads = 0;
};

class ByteSink {
 public:
  // Throws Error when the file cannot be written, Error of kind kUsage for a level out of range.
  explicit ByteSink(const std::string& path, const ByteSinkOptions& options = {});
  ~ByteSink();
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  void Write(std::string_view bytes);
  // Ends the stream, makes it durable and puts it in place. Call once; without it nothing stays.
  void Commit();

  // Bytes given to Write so far.
  uint64_t size() const { return size_; }

  // Packs text on its way to the file.
  class Packer;

 private:
  std::unique_ptr<Packer> packer_;
  uint64_t size_ = 0;
};

}  // namespace kibitz::io
