// The entries of a zip archive as spans of the mapped file, for .pt files.
//
//   const ZipReader zip(file->bytes(), path);
//   if (const ZipReader::Entry* entry = zip.Find("archive/data.pkl")) Use(zip.Content(*entry));
//
// Not libzip, because tensors point into the mapped file, and libzip does not tell where an entry's
// bytes begin. Only stored (uncompressed) entries can be mapped; torch writes no others. Refused
// are encryption, several disks, entries that overlap, duplicate names, and in Content a compressed
// entry (TorchScript archives have some). Checksums are not compared: that would read the whole
// file, and torch can omit them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kibitz::io {

class ZipReader {
 public:
  struct Entry {
    std::string_view name;
    std::span<const std::byte> raw;  // As they lie in the file.
    uint16_t method = 0;             // How they are compressed; 0: not.
  };

  // `place` names the file in errors. The bytes must outlive the reader. Throws Error.
  ZipReader(std::span<const std::byte> bytes, std::string place);

  // In the order of the central directory.
  const std::vector<Entry>& entries() const { return entries_; }
  // nullptr when there is none.
  const Entry* Find(std::string_view name) const;
  // The content of an entry. Throws Error when it is compressed.
  std::span<const std::byte> Content(const Entry& entry) const;

 private:
  struct Directory {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t count = 0;
  };
  struct Record;

  Directory FindDirectory() const;
  void ReadZip64(size_t end_record, Directory& directory) const;
  Record ReadRecord(uint64_t& at, uint64_t end) const;
  void ReadZip64Extra(std::span<const std::byte> extra, Record& record) const;
  uint64_t DataOffset(const Record& record) const;
  void CheckOverlaps(std::vector<std::pair<uint64_t, uint64_t>> ranges) const;
  [[noreturn]] void Fail(uint64_t offset, const std::string& what) const;

  std::span<const std::byte> bytes_;
  std::string place_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace kibitz::io
