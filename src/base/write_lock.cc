#include "base/write_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxHolderBytes = 400;  // A message should fit a screen.

std::string CommandLine() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  while (words.ends_with('\0')) words.pop_back();
  for (char& c : words) {
    if (c == '\0') c = ' ';
  }
  return Quoted(words, kMaxHolderBytes / 2);
}

// "process 812 on host since 2025-01-31 12:00:00 UTC: 'kibitz ...'".
std::string Holder() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("process {} on {} since {:%Y-%m-%d %H:%M:%S} UTC: {}\n", getpid(), host.data(),
                     fmt::gmtime(std::time(nullptr)), CommandLine());
}

std::string ReadHolder(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxHolderBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const std::string_view line = Trim(text);
  return line.empty() ? "another process" : std::string(line);
}

// -1 while another process holds it.
int TryAcquire(const std::string& path, int kind) {
  while (true) {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      throw Error::System(
          fmt::format("cannot write {} (does the folder exist, and may you write there?)", path));
    }
    if (flock(descriptor, kind | LOCK_NB) != 0) {
      const int code = errno;
      close(descriptor);
      errno = code;
      if (code != EWOULDBLOCK) throw Error::System("cannot lock " + path);
      return -1;
    }
    if (internal::StillNamed(descriptor, path)) return descriptor;
    close(descriptor);
  }
}

int Acquire(const std::string& path, const std::string& what, int kind = LOCK_EX) {
  const int descriptor = TryAcquire(path, kind);
  if (descriptor >= 0) return descriptor;
  throw Error("{}: is being written by {}; wait for it, or choose another output", what,
              ReadHolder(path));
}

std::string LockOfFolder(const std::string& folder) {
  MakeFolder(folder);
  return folder + "/lock";
}

std::string LockOfFile(const std::string& path) {
  std::error_code error;
  fs::path target = path;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(path, error);
  return (error ? path : target.string()) + ".lock";
}

}  // namespace

WriteLock::WriteLock(std::string lock_path, int descriptor)
    : path_(std::move(lock_path)), descriptor_(descriptor) {
  const std::string holder = Holder();
  // The text is for people only: the lock holds without it, also on a full disk.
  if (ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = pwrite(descriptor_, holder.data(), holder.size(), 0);
  }
}

WriteLock WriteLock::OfFolder(const std::string& folder) {
  const std::string path = LockOfFolder(folder);
  return {path, Acquire(path, folder)};
}

WriteLock WriteLock::OfFile(const std::string& path) {
  return {LockOfFile(path), Acquire(LockOfFile(path), path)};
}

std::optional<WriteLock> WriteLock::TryOfFolder(const std::string& folder) {
  const std::string path = LockOfFolder(folder);
  const int descriptor = TryAcquire(path, LOCK_EX);
  if (descriptor < 0) return std::nullopt;
  return WriteLock(path, descriptor);
}

WriteLock WriteLock::ShareFile(const std::string& path) {
  return {LockOfFile(path), Acquire(LockOfFile(path), path, LOCK_SH)};
}

WriteLock WriteLock::ShareFolder(const std::string& folder) {
  const std::string path = LockOfFolder(folder);
  return {path, Acquire(path, folder, LOCK_SH)};
}

WriteLock::WriteLock(WriteLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

WriteLock::~WriteLock() {
  if (descriptor_ < 0) return;
  // A shared lock becomes ours alone when we are the last.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) unlink(path_.c_str());
  close(descriptor_);
}

namespace internal {

bool StillNamed(int descriptor, const std::string& path) {
  struct stat by_descriptor = {};
  struct stat by_name = {};
  return fstat(descriptor, &by_descriptor) == 0 && stat(path.c_str(), &by_name) == 0 &&
         by_descriptor.st_ino == by_name.st_ino && by_descriptor.st_dev == by_name.st_dev;
}

}  // namespace internal

void MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw Error("cannot make the folder {}: {}; choose a folder that you may write", folder,
              error.message());
}

}  // namespace kibitz
