// Writes a zip of stored (uncompressed) entries whose bytes begin at multiples of 64, as torch
// does, so that readers can map them. The file appears only with Finish().
//
//   ZipWriter zip("model.pt");
//   zip.Add("archive/data.pkl", pickle);
//   zip.Finish();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"

namespace kibitz::io {

class ZipWriter {
 public:
  // Sizes and offsets from `zip64_from` on are written as 64-bit fields; tests lower it.
  explicit ZipWriter(const std::string& path, uint64_t zip64_from = 0xffffffff);

  void Add(std::string_view name, std::string_view bytes);
  // With `checksum`, the archive's comment ends with the CRC-32C of all bytes before those eight
  // digits (CheckZipSum).
  void Finish(bool checksum = false);

 private:
  struct Entry {
    std::string name;
    uint64_t size = 0;
    uint64_t offset = 0;
    uint32_t crc = 0;
  };

  std::string LocalHeader(const Entry& entry) const;
  void Write(std::string_view bytes);
  void WriteDirectory();
  void WriteEnd(uint64_t directory, uint64_t size, std::string_view comment);

  AtomicFile file_;
  uint64_t zip64_from_;
  std::vector<Entry> entries_;
  uint32_t crc_ = 0;  // CRC-32C of all bytes so far.
};

// The comment that Finish(true) writes, before its digits.
inline constexpr std::string_view kZipSumLabel = "kibitz crc32c ";

}  // namespace kibitz::io
