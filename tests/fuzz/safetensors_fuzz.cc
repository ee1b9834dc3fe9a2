// Any bytes as a safetensors file: tensors within them or an Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "io/weights/convert_weights.h"
#include "io/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto content = kibitz::io::ParseSafetensors(bytes, nullptr, "fuzz");
    unsigned sum = 0;
    for (const auto& [name, tensor] : content.tensors) {
      for (std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
    }
    [[maybe_unused]] volatile unsigned keep = sum;
    kibitz::io::Unflatten(content, "fuzz");
  } catch (const kibitz::Error&) {
  }
  return 0;
}
