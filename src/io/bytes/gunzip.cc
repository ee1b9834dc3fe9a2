#include "io/bytes/gunzip.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace kibitz::io {
namespace {

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* unpacker) const {
    libdeflate_free_decompressor(unpacker);
  }
};
using Unpacker = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

// What a first try takes: game files of lc0 unpack to fifty times their size.
constexpr size_t kFirstRatio = 64;
constexpr size_t kFirstBytes = 1 << 16;

// Appends the first member of `packed` to `out` and returns its length; 0 when it cannot be read.
size_t AppendMember(libdeflate_decompressor* unpacker, std::string_view packed, size_t max_bytes,
                    std::string& out) {
  const size_t begin = out.size();
  size_t room = std::min(max_bytes - begin, packed.size() * kFirstRatio + kFirstBytes);
  while (true) {
    out.resize(begin + room);
    size_t taken = 0;
    size_t made = 0;
    const libdeflate_result result = libdeflate_gzip_decompress_ex(
        unpacker, packed.data(), packed.size(), out.data() + begin, room, &taken, &made);
    if (result == LIBDEFLATE_SUCCESS) {
      out.resize(begin + made);
      return taken;
    }
    if (result != LIBDEFLATE_INSUFFICIENT_SPACE || begin + room >= max_bytes) return 0;
    room = std::min(max_bytes - begin, room * 2);
  }
}

}  // namespace

bool LooksLikeGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b\x08"); }

bool Gunzip(std::string_view packed, size_t max_bytes, std::string& out) {
  thread_local const Unpacker unpacker(libdeflate_alloc_decompressor());
  CHECK(unpacker != nullptr);
  out.clear();
  while (!packed.empty()) {
    const size_t taken = AppendMember(unpacker.get(), packed, max_bytes, out);
    if (taken == 0) {
      out.clear();
      return false;
    }
    packed.remove_prefix(taken);
  }
  return true;
}

}  // namespace kibitz::io
