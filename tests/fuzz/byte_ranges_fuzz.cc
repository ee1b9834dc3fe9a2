// A file cut into ranges of lines: any bytes give an Error, or the ranges together hold the bytes
// of the whole file. The first byte is the least size of a range, unless they would be many: each
// opens the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "io/bytes/byte_ranges.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace kibitz::io;

constexpr size_t kMaxBytes = 1 << 20;  // Of what a small file unpacks to.
constexpr size_t kMaxRanges = 12;

// False when there is too much. Throws Error.
bool Add(ByteSource& source, std::string& all) {
  std::string piece(4096, '\0');
  while (const size_t count = source.Read(piece.data(), piece.size())) {
    all.append(piece, 0, count);
    if (all.size() > kMaxBytes) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const kibitz::FuzzFile file(data + 1, size - 1, "a.jsonl");
  const ByteSourceOptions options = {.max_window = 1 << 20, .read_ahead = false};
  const auto ranges =
      CutBytes(file.path(), std::max<size_t>(data[0] + size_t{1}, size / kMaxRanges));
  uint64_t end = 0;
  for (const ByteRange& range : ranges) {
    CHECK(range.begin == end && range.end > end);
    end = range.end;
  }
  CHECK(end == size - 1);
  std::string whole;
  try {
    if (!Add(*OpenBytes(file.path(), options), whole)) return 0;
  } catch (const kibitz::Error&) {  // What broken bytes should end in.
    return 0;
  }
  std::string joined;
  for (const ByteRange& range : ranges) Add(*LinesIn(file.path(), range, options), joined);
  CHECK(joined == whole);
  return 0;
}
