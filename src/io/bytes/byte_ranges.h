// Cuts a file of lines into ranges that are read on their own, by threads or on other machines:
// between the frames of a zstd file, anywhere in a plain one.
//
//   for (const ByteRange& range : CutBytes("evals.jsonl.zst", 4 << 20)) {
//     JsonLines lines(LinesIn("evals.jsonl.zst", range));
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/bytes/byte_source.h"

namespace kibitz::io {

// Of the file, packed as it is.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t bytes() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// Ranges of `min_bytes` or a little more that cover the file. What cannot be cut is one range:
// gzip, a single zstd frame, the rest of a file behind damage.
std::vector<ByteRange> CutBytes(const std::string& path, uint64_t min_bytes);

// The unpacked lines that belong to a range of CutBytes: the line across its end is whole, and the
// one across its begin is left to the range before. Throws Error as OpenBytes does.
std::unique_ptr<ByteSource> LinesIn(const std::string& path, const ByteRange& range,
                                    const ByteSourceOptions& options = {});

}  // namespace kibitz::io
