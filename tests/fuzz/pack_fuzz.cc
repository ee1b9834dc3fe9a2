// Any bytes as the rows of a 2048 pack: an Error, or rows that can all be read. The metadata beside
// them is sound.
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/check.h"
#include "base/error.h"
#include "io/tables/sqlite.h"
#include "students/twenty48/data/pack.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void WriteMetadata() {
  using namespace kibitz;
  const std::string path = FuzzFolder() + "/metadata.db";
  if (std::filesystem::exists(path)) return;
  io::SqliteDb db(path, io::SqliteDb::Mode::kWrite);
  db.Execute(
      "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL, "
      "max_score INT NOT NULL, highest_tile INT NOT NULL);"
      "INSERT INTO runs VALUES (0, 7, 1, 4, 4)");
  const std::string names = R"({"search": 0, "tuple11": 1, "tuple10": 2})";
  FuzzFile(reinterpret_cast<const uint8_t*>(names.data()), names.size(), "valuation_types.json");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  WriteMetadata();
  const FuzzFile file(data, size, "steps.npy");
  try {
    const twenty48::Pack pack = twenty48::Pack::Open(FuzzFolder());
    const uint64_t rows = std::min<uint64_t>(pack.rows(), 1000);
    for (uint64_t i = 0; i < rows; ++i) twenty48::ProblemOf(pack.Row(i));
    pack.CheckRows();
  } catch (const Error& error) {
    CHECK(!error.message().empty());
  }
  return 0;
}
