// Writing that is all or nothing: the text goes to "<path>.tmp", Commit() makes it durable and
// renames it. Without Commit (an exception, Ctrl-C) the old file stays and the new one is removed;
// after kill -9 the old file stays too, and the next writer reuses the leftover ".tmp". A device or
// a pipe, such as /dev/stdout, is written to directly: a rename would replace it.
//
//   AtomicFile file("runs/a/metrics.json");
//   file.Write(text);
//   file.Commit();
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kibitz {

class AtomicFile {
 public:
  // Throws Error when the folder cannot be written. Symbolic links are followed to their target.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::string_view bytes);
  // Overwrites bytes already written, such as a header whose counts are known at the end.
  void WriteAt(uint64_t offset, std::string_view bytes);
  uint64_t size() const { return size_; }
  // The file being filled, for a library that can only write to a name. It must not replace it. Of
  // a device it is the device itself.
  const std::string& temporary() const { return temporary_; }

  // Flushes to disk (file and folder) and puts the file in place. Call once.
  void Commit();

 private:
  void WriteAll(std::string_view bytes);
  void Flush();

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string buffer_;
};

// The whole of a small file at once.
void WriteFileAtomically(const std::string& path, std::string_view bytes);

}  // namespace kibitz
