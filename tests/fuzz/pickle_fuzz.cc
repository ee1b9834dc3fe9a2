// Any bytes as a .pt file, and as a bare pickle: a value or an Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "io/weights/convert_weights.h"
#include "io/weights/state_dict.h"
#include "io/weights/torch_file.h"

namespace {

using kibitz::io::Value;

template <typename Read>
void Try(Read read) {
  try {
    const Value value = read();
    // What users do next: walk it, copy views into row order.
    kibitz::io::Flatten(value, "fuzz");
    kibitz::io::StateDict::From(value, "fuzz");
  } catch (const kibitz::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  Try([&] { return kibitz::io::ParsePickle(bytes, "fuzz"); });
  Try([&] { return kibitz::io::ParsePt(bytes, nullptr, "fuzz"); });
  return 0;
}
