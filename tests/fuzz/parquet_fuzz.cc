// Any bytes as a Parquet file: an Error, or rows of which every cell can be read.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"
#include "io/tables/parquet.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  const FuzzFile file(data, size, "a.parquet");
  try {
    const io::ParquetReader reader({file.path()},
                                   {.threads = 1, .memory_bytes = uint64_t{128} << 20});
    std::vector<io::ColumnSpec> columns;
    for (const io::FileColumn& column : reader.Info(0).columns) {
      columns.push_back({column.name, column.type});
    }
    io::ParquetScan scan = reader.Scan(columns);
    uint64_t bytes = 0;
    for (int chunks = 0; chunks < 4; ++chunks) {
      const io::Chunk* chunk = scan.Next();
      if (chunk == nullptr) break;
      for (const io::Column& column : chunk->columns) {
        for (std::string_view text : column.texts) bytes += text.size();
      }
    }
    CHECK(bytes < uint64_t{1} << 40);
  } catch (const Error& error) {
    CHECK(!error.message().empty());
  }
  return 0;
}
