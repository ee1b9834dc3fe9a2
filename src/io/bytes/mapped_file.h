// A file as bytes in memory, read by the kernel as they are touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace kibitz::io {

class MappedFile {
 public:
  // Shared, so that what points into the bytes can keep them. Throws Error.
  static std::shared_ptr<const MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // For scattered reads of a few bytes, such as a directory: disables the kernel's read-ahead
  // meanwhile (8 times faster from a cold disk), and releases the touched pages afterwards.
  void BeginScatteredReads() const;
  void EndScatteredReads() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace kibitz::io
