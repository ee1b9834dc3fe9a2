#include "io/bytes/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"

namespace kibitz::io {

std::shared_ptr<const MappedFile> MappedFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error::System("cannot read " + path);
  struct stat info = {};
  const bool known = fstat(descriptor, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    close(descriptor);
    throw Error("cannot read {}: it is not a regular file", path);
  }
  const auto size = static_cast<size_t>(info.st_size);
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      close(descriptor);
      throw Error::System("cannot map " + path);
    }
    bytes = {static_cast<const std::byte*>(address), size};
  }
  close(descriptor);
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

MappedFile::MappedFile(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

// Advice that the kernel does not take changes no result, so failures do not matter.
void MappedFile::BeginScatteredReads() const {
  if (bytes_.empty()) return;
  madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_RANDOM);
}

void MappedFile::EndScatteredReads() const {
  if (bytes_.empty()) return;
  madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
  madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_NORMAL);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace kibitz::io
