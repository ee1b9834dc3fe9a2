// Reads a file as a stream of bytes, decompressed: plain, gzip (also of many members), zlib, or
// zstd (also of many frames, with skippable ones between). The first bytes decide, not the name.
// Decompression runs on its own thread, a few chunks ahead, so memory is the same for files of any
// size and compression ratio.
//
//   auto source = OpenBytes("games.pgn.zst");
//   PgnReader reader(ReadFunction(std::move(source)));
//
// Damaged input throws Error with the file and the byte offset, after all bytes before it were
// returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/limits.h"

namespace kibitz::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads at most `size` bytes and returns how many; 0 at the end (or when `size` is 0). Throws
  // Error. Not to be called again after an Error.
  virtual size_t Read(char* buffer, size_t size) = 0;
  // Compressed bytes of the file read so far: for progress. Safe from any thread.
  virtual uint64_t Position() const = 0;
  // The path, for messages.
  virtual const std::string& name() const = 0;
};

struct ByteSourceOptions {
  // The largest window of a zstd frame: 32 MB unless raised, enough for 'zstd -20' and the Lichess
  // files (8 MB). The window is allocated before the first byte is decompressed, so a file that
  // needs more is refused. From 1 kB to 2 GB.
  uint64_t max_window = Limits().window;
  bool read_ahead = true;  // Decompress on another thread.
};

// Opens the file and detects its compression. Throws Error.
std::unique_ptr<ByteSource> OpenBytes(const std::string& path,
                                      const ByteSourceOptions& options = {});

// The content of `packed`, decompressed if it is compressed. OpenBytes is this over the file.
std::unique_ptr<ByteSource> Unpacked(std::unique_ptr<ByteSource> packed,
                                     const ByteSourceOptions& options = {});

// Bytes in memory as a source; `name` is for messages.
std::unique_ptr<ByteSource> MemoryBytes(std::string bytes, std::string name);

// For readers that take a function instead of a source.
std::function<size_t(char* buffer, size_t size)> ReadFunction(std::unique_ptr<ByteSource> source);

}  // namespace kibitz::io
