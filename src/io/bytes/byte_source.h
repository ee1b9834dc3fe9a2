// A file as a stream of bytes, whatever it is packed with: plain, gzip (also many members in a
// row), zlib, or zstd (also many frames, with skippable ones between). What it is shows in its
// first bytes, not in its name. Unpacking runs on a thread of its own, a few chunks ahead, so
// memory stays the same for files of any size and any rate of compression.
//
//   auto source = OpenBytes("games.pgn.zst");
//   PgnReader reader(ReadFunction(std::move(source)));
//
// Broken input throws Error with the file and the byte in it, after all bytes before the fault
// were handed out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kibitz::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills at most `size` bytes and tells how many; 0 at the end (or when `size` is 0). Throws
  // Error. Not to be called again after an Error.
  virtual size_t Read(char* buffer, size_t size) = 0;
  // Bytes of the file taken so far, as they are on disk: for progress, and from any thread.
  virtual uint64_t Position() const = 0;
  // The path, for messages.
  virtual const std::string& name() const = 0;
};

struct ByteSourceOptions {
  // A zstd frame may ask for this window at most: 2^25 bytes are 32 MB, all that 'zstd -20' and
  // the Lichess files (2^23) need. The window is memory that is taken before the first byte is
  // unpacked, so a file that asks for more is refused unless the caller raises this (up to 31).
  int max_window_log = 25;
  bool read_ahead = true;  // Unpack on a thread of its own.
};

// Opens and recognises the file. Throws Error.
std::unique_ptr<ByteSource> OpenBytes(const std::string& path,
                                      const ByteSourceOptions& options = {});

// What `packed` holds, unpacked if it is packed. OpenBytes is this over the file.
std::unique_ptr<ByteSource> Unpacked(std::unique_ptr<ByteSource> packed,
                                     const ByteSourceOptions& options = {});

// Bytes in memory as a source; `name` stands in messages.
std::unique_ptr<ByteSource> MemoryBytes(std::string bytes, std::string name);

// For readers that take a function instead of a source.
std::function<size_t(char* buffer, size_t size)> ReadFunction(std::unique_ptr<ByteSource> source);

}  // namespace kibitz::io
