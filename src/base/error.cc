#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace kibitz {

Error Error::System(const std::string& message) {
  const int code = errno;
  return Error("{}: {}", message, std::generic_category().message(code));
}

}  // namespace kibitz
