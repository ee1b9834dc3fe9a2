#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace kibitz {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "kibitz: bug at %s:%d: CHECK(%s) failed; please report it\n", file, line,
               condition);
  std::abort();
}

}  // namespace kibitz
