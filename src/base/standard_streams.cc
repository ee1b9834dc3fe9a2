#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace kibitz {

void ReserveStandardStreams() {
  for (int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(wanted, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number, which is this one. Standard output must not seem to work.
    const int opened = open("/dev/null", wanted == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != wanted) close(opened);
  }
}

void PrintToStderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace kibitz
