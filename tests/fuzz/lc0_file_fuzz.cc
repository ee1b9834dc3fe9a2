// Any bytes as an lc0 network: read, or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "oracles/lc0/weights_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    kibitz::oracles::ParseLc0File({reinterpret_cast<const char*>(data), size}, "net.pb");
  } catch (const kibitz::Error&) {
  }
  return 0;
}
