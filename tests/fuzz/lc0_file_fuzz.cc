// Any bytes as an lc0 network: read, or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "io/weights/lc0_file.h"
#include "oracles/lc0/residual_weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    kibitz::io::Lc0Content content =
        kibitz::io::ParseLc0File({reinterpret_cast<const char*>(data), size}, "net.pb");
    kibitz::oracles::Lc0WeightsOf(
        {.weights = kibitz::io::StateDict(std::move(content.tensors), "net.pb"),
         .config = std::move(content.config),
         .place = "net.pb",
         .format = kibitz::io::ModelFormat::kLc0});
  } catch (const kibitz::Error&) {
  }
  return 0;
}
