// Converts rows between Parquet and JSON lines.
//
//   ConvertParquetToJsonl("evals.parquet", "evals.jsonl.zst");
//   ConvertJsonlToParquet("evals.jsonl.zst", "evals.parquet");
//
// A row is an object, a column a key; nulls are omitted. To Parquet the file is read twice: once to
// find the columns and their types (int64, double, bool, else text; objects and arrays become JSON
// text), once to write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kibitz::io {

// Called now and then with the rows done so far. May throw to stop; the output is then removed.
using RowProgress = std::function<void(uint64_t rows)>;

struct TableConversionOptions {
  bool skip_bad = false;  // Leave out lines that are no JSON objects, instead of throwing.
  RowProgress progress = {};
};

struct TableConversion {
  uint64_t rows = 0;
  uint64_t skipped = 0;       // Lines that are not JSON objects.
  std::string first_problem;  // Of the first such line.
};

TableConversion ConvertParquetToJsonl(const std::string& from, const std::string& to,
                                      const TableConversionOptions& options = {});
// At most Limits().columns different keys. Throws Error, and leaves no file then.
TableConversion ConvertJsonlToParquet(const std::string& from, const std::string& to,
                                      const TableConversionOptions& options = {});

}  // namespace kibitz::io
