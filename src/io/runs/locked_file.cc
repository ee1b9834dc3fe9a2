#include "io/runs/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace kibitz::io {

int OpenLocked(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) throw Error::System("cannot write " + path);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw Error("{} is being written by another process; wait for it or choose another name", path);
  }
  return descriptor;
}

void WriteWhole(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::System("cannot write " + path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace kibitz::io
