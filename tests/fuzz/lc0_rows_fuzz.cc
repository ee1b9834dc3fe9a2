// Any bytes as lc0's training data: alone, packed, or in a tar archive. Read, or a counted reason.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/tar_reader.h"
#include "oracles/lc0/training_row.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  kibitz::SkipCounter skipped;
  kibitz::oracles::ReadLc0Game(bytes, "game.gz", {}, skipped);
  try {
    kibitz::io::TarReader tar(kibitz::io::Unpacked(
        kibitz::io::MemoryBytes(std::string(bytes), "games.tar"), {.read_ahead = false}));
    while (tar.Next()) kibitz::oracles::ReadLc0Game(tar.ReadAll(), "game.gz", {}, skipped);
  } catch (const kibitz::Error&) {
  }
  return 0;
}
