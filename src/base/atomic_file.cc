#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/write_lock.h"

namespace kibitz {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

std::string FollowLinks(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

// A device, a pipe or a socket.
bool IsSpecial(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

void SyncFolderOf(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // A folder we may write but not read: the rename still holds.
  fsync(descriptor);
  close(descriptor);
}

// Opens the temporary file for us alone: two writers would mix their bytes.
int OpenLocked(const std::string& path, const std::string& temporary) {
  while (true) {
    const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      throw Error::System(fmt::format("cannot write {} (does its folder exist?)", temporary));
    }
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor);
      throw Error("{} is being written by another process; wait for it or choose another name",
                  path);
    }
    if (internal::StillNamed(descriptor, temporary)) return descriptor;
    close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) {
  if (IsSpecial(path)) {
    path_ = temporary_ = path;
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw Error::System(fmt::format("cannot write {}", path));
    return;
  }
  path_ = FollowLinks(path);
  temporary_ = path_ + ".tmp";
  descriptor_ = OpenLocked(path_, temporary_);
  if (ftruncate(descriptor_, 0) != 0) {
    close(descriptor_);
    throw Error::System(fmt::format("cannot write {}", temporary_));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  if (temporary_ != path_) unlink(temporary_.c_str());
  close(descriptor_);
}

void AtomicFile::Write(std::string_view bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_ += bytes;
    return;
  }
  Flush();
  WriteAll(bytes);
}

void AtomicFile::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::System(fmt::format("cannot write {}", temporary_));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::Flush() {
  WriteAll(buffer_);
  buffer_.clear();
}

void AtomicFile::WriteAt(uint64_t offset, std::string_view bytes) {
  CHECK(offset + bytes.size() <= size_);
  Flush();
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::System(fmt::format("cannot write {}", temporary_));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void AtomicFile::Commit() {
  CHECK(descriptor_ >= 0);
  Flush();
  if (temporary_ == path_) {
    close(descriptor_);
    descriptor_ = -1;
    return;
  }
  if (fsync(descriptor_) != 0) throw Error::System(fmt::format("cannot write {}", temporary_));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw Error::System(fmt::format("cannot rename {} to {}", temporary_, path_));
  }
  close(descriptor_);
  descriptor_ = -1;
  SyncFolderOf(path_);
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Write(bytes);
  file.Commit();
}

}  // namespace kibitz
