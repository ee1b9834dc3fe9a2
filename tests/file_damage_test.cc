// Every golden file of every format, cut short and with bits flipped: always an Error or a valid
// read, never a crash. The usual run takes a sample of the damage; KIBITZ_DAMAGE=full does all of
// it: each byte of the first 4 KB, 500 random places, 10,000 flips a file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/inspect.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

namespace fs = std::filesystem;

bool Full() {
  const char* damage = std::getenv("KIBITZ_DAMAGE");
  return damage != nullptr && std::string_view(damage) == "full";
}

testing::Damage HowMuch(uint64_t file_bytes) {
  testing::Damage damage;
  if (Full()) return damage;
  damage.cut_every_byte_of = 48;
  damage.random_cuts = file_bytes > (1 << 20) ? 5 : 20;
  damage.flips = file_bytes > (1 << 20) ? 20 : 100;
  return damage;
}

// The bytes go through a file of the same name, as a user's would.
void DamageFile(const fs::path& path, const testing::TempFolder& folder) {
  SCOPED_TRACE(path.string());
  const std::string copy = folder.File(path.filename());
  const std::string whole = testing::ReadWhole(path);
  const auto read = [&](std::string_view bytes) {
    std::ofstream(copy, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    InspectFile(copy);
  };
  const testing::Damage damage = HowMuch(whole.size());
  const testing::DamageCounts cuts = Cut(whole, damage, read);
  EXPECT_GT(cuts.errors + cuts.reads, 0);
  const testing::DamageCounts flips = Flip(whole, damage, read);
  if (Full()) {
    fmt::print("{}: cuts {} errors, {} reads; flips {} errors, {} reads\n", path.string(),
               cuts.errors, cuts.reads, flips.errors, flips.reads);
  }
  fs::remove(copy);
}

// One file of each kind and folder unless all are asked for.
TEST(FileDamageTest, EveryKindSurvives) {
  const std::set<std::string> known = {".parquet", ".jsonl",       ".zst", ".gz",  ".npy",
                                       ".pt",      ".safetensors", ".db",  ".json"};
  const testing::TempFolder folder;
  std::set<std::string> seen;
  for (const auto& entry : fs::recursive_directory_iterator(testing::GoldenPath(""))) {
    const std::string ending = entry.path().extension();
    if (!entry.is_regular_file() || !known.contains(ending)) continue;
    const std::string kind = entry.path().parent_path().filename().string() + ending;
    if (!Full() && !seen.insert(kind).second) continue;
    DamageFile(entry.path(), folder);
  }
}

}  // namespace
}  // namespace kibitz::io
