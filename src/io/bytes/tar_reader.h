// The files of a tar archive, one after the other, from a stream: the archive may be of any size
// and compressed. Reads ustar, GNU and pax archives; folders, links and other entries that are no
// files are passed over.
//
//   TarReader tar(OpenBytes("training.tar"));
//   while (std::optional<TarEntry> entry = tar.Next()) {
//     if (entry->size <= kLimit) Use(entry->name, tar.ReadAll());
//   }
//
// A damaged or cut archive throws Error with its byte, after the files before that place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/bytes/byte_source.h"

namespace kibitz::io {

struct TarEntry {
  std::string name;
  uint64_t size = 0;
};

// Whether these bytes, at least 512, begin a tar archive: the checksum of the first header tells.
bool LooksLikeTar(std::string_view head);

class TarReader {
 public:
  explicit TarReader(std::unique_ptr<ByteSource> source);

  // The next file; nothing at the end. Passes over what was not read of the one before.
  std::optional<TarEntry> Next();
  // The content of the file that Next() returned. Allocates as it reads, whatever the header says.
  std::string ReadAll();
  // At most `size` bytes of it; 0 at its end.
  size_t Read(char* buffer, size_t size);

  // Compressed bytes of the archive read so far.
  uint64_t Position() const { return source_->Position(); }
  const std::string& name() const { return source_->name(); }

 private:
  // Fills the buffer; false at the end of the archive before its first byte. Throws Error in the
  // middle.
  bool ReadWhole(char* buffer, size_t size);
  void Pass();
  // The content of a header that describes the next file, such as its long name.
  std::string ReadNote(uint64_t size);

  std::unique_ptr<ByteSource> source_;
  uint64_t offset_ = 0;  // In the unpacked archive.
  uint64_t left_ = 0;    // Of the current file.
  uint64_t pad_ = 0;     // Behind it.
};

}  // namespace kibitz::io
