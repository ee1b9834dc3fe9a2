// JSON lines, plain or packed as gzip, zlib or zstd: any bytes give an Error, or lines that are
// reported as broken or can be walked through.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "io/tables/jsonl.h"

namespace {

using namespace kibitz::io;

size_t Walk(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kArray: {
      size_t sum = 1;
      for (const JsonValue item : value.Items()) sum += Walk(item);
      return sum;
    }
    case JsonKind::kObject: {
      size_t sum = 1;
      for (const JsonValue field : value.Fields()) {
        CHECK(value[field.key()].kind() != JsonKind::kMissing);
        sum += field.key().size() + Walk(field);
      }
      return sum;
    }
    case JsonKind::kString:
      return value.String().size();
    case JsonKind::kInt:
      return value.Int() > 0 ? 1 : 0;
    case JsonKind::kDouble:
      return value.Double() > 0 ? 1 : 0;
    case JsonKind::kBool:
      return value.Bool() ? 1 : 0;
    case JsonKind::kNull:
    case JsonKind::kMissing:
      return 0;
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const JsonLinesOptions options = {.max_line_bytes = 1 << 16,
                                    .source = {.max_window = 1 << 20, .read_ahead = false}};
  try {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    JsonLines lines(Unpacked(MemoryBytes(std::move(bytes), "fuzz"), options.source), options);
    uint64_t last = 0;
    while (const JsonLine* line = lines.Next()) {
      CHECK(line->number() > last);
      last = line->number();
      if (line->ok()) Walk(line->root());
    }
  } catch (const kibitz::Error&) {  // What broken bytes should end in.
  }
  return 0;
}
