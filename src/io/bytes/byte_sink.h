// Writes a file as a stream of bytes, compressed by its extension: .gz, .zst, otherwise plain. The
// file appears under its name only at Commit().
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
  // gzip 1 to 9, zstd 1 to 22; 0 is the library's default (6 and 3).
  int level = 0;
  // Threads that compress besides the caller's; zstd only. The output is the same for any number
  // above 0, and slightly longer than with 0.
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
  // Ends the stream, syncs the file and renames it into place. Call once; without it the file is
  // removed.
  void Commit();

  // Bytes passed to Write so far.
  uint64_t size() const { return size_; }

  // Compresses text into the file.
  class Packer;

 private:
  std::unique_ptr<Packer> packer_;
  uint64_t size_ = 0;
};

}  // namespace kibitz::io
