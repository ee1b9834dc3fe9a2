// Older checkpoints of the decoder, brought up to date as the public reference does it.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "io/tables/npy.h"
#include "io/weights/torch_file.h"
#include "students/decoder/data/migrate.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

using io::Tensor;
using testing::GoldenPath;

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

io::StateDict ReadLegacy() {
  const std::string path = GoldenPath("decoder/migrate/legacy.pt");
  return io::StateDict::From(io::ReadPt(path), path);
}

TEST(GoldenDecoderTest, MigratesBitForBit) {
  const auto expected =
      nlohmann::json::parse(std::ifstream(GoldenPath("decoder/migrate/migrate.json")));
  const io::StateDict old = ReadLegacy();
  const Migration migration = MigrateStateDict(old, "legacy.pt");
  size_t tensors = 0;
  for (const char* kind : {"changed", "added"}) {
    for (const std::string name : expected[kind]) {
      const auto file = io::NpyFile::Open(GoldenPath("decoder/migrate/expected/" + name + ".npy"));
      EXPECT_TRUE(SameBytes(migration.weights.Get(name), file.AsTensor())) << name;
      ++tensors;
    }
  }
  EXPECT_EQ(migration.changes.size(), tensors);
  for (const std::string name : expected["unchanged"]) {
    EXPECT_TRUE(SameBytes(migration.weights.Get(name), old.Get(name))) << name;
    ++tensors;
  }
  EXPECT_EQ(migration.weights.tensors().size(), tensors);
}

TEST(GoldenDecoderTest, MigratesOnlyWhatIsOld) {
  const Migration once = MigrateStateDict(ReadLegacy(), "legacy.pt");
  const Migration twice = MigrateStateDict(once.weights, "migrated");
  EXPECT_TRUE(twice.changes.empty());
  for (const io::NamedTensor& tensor : once.weights.tensors()) {
    EXPECT_TRUE(SameBytes(tensor.tensor, twice.weights.Get(tensor.name))) << tensor.name;
  }
}

}  // namespace
}  // namespace kibitz::decoder
