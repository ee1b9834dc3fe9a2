#include "students/policy/data/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "io/bytes/crc32c.h"

namespace kibitz::policy {

AppendFile::AppendFile(std::string path, const FileState& from, uint64_t head_bytes)
    : path_(std::move(path)), head_bytes_(head_bytes), state_(from) {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error::System("cannot write " + path_);
  struct stat info = {};
  const bool known = fstat(descriptor_, &info) == 0;
  const auto size = static_cast<uint64_t>(info.st_size);
  const uint64_t wanted = head_bytes + from.bytes;
  const bool shorter = size < from.bytes + (from.bytes > 0 ? head_bytes : 0);
  // Not where the size is right: ext4 writes a file that was truncated to nothing to disk when it
  // is closed, and partitions are removed soon.
  const auto truncated = [&] {
    return size == wanted || ftruncate(descriptor_, static_cast<off_t>(wanted)) == 0;
  };
  if (!known || shorter || !truncated()) {
    close(descriptor_);
    if (!shorter) throw Error::System("cannot truncate " + path_);
    throw Error("{}: has {} bytes, its journal says {}; remove the folder and run again", path_,
                size, wanted);
  }
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      head_bytes_(other.head_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      state_(other.state_) {}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void AppendFile::Append(std::string_view bytes) {
  WriteAt(head_bytes_ + state_.bytes, bytes);
  state_.crc = io::Crc32c(bytes, state_.crc);
  state_.bytes += bytes.size();
}

void AppendFile::WriteHead(std::string_view bytes) {
  CHECK(bytes.size() == head_bytes_);
  WriteAt(0, bytes);
}

void AppendFile::WriteAt(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::System("cannot write " + path_);
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AppendFile::Sync() {
  if (fdatasync(descriptor_) != 0) throw Error::System("cannot write " + path_);
}

}  // namespace kibitz::policy
