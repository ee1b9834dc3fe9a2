#include "io/bytes/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::testing::HasSubstr;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(FingerprintTest, SeesEveryByteOfASmallFile) {
  const testing::TempFolder folder;
  std::string bytes(200'000, 'x');
  const std::string path = folder.File("a");
  Write(path, bytes);
  std::set<std::string> seen = {FingerprintOf(path)["hash"]};
  for (size_t place = 0; place < bytes.size(); place += 1999) {
    bytes[place] ^= 1;
    Write(path, bytes);
    bytes[place] ^= 1;
    EXPECT_TRUE(seen.insert(FingerprintOf(path)["hash"]).second) << place;
  }
}

TEST(FingerprintTest, KnowsNamesSizesAndContentButNoFolders) {
  const testing::TempFolder folder;
  std::filesystem::create_directory(folder.File("sub"));
  Write(folder.File("a"), "one");
  Write(folder.File("sub/a"), "one");
  const auto one = FingerprintOf(folder.File("a"));
  EXPECT_EQ(one, FingerprintOf(folder.File("sub/a")));
  Write(folder.File("a"), "two");
  EXPECT_EQ(FingerprintChange(one, FingerprintOf(folder.File("a"))),
            "a: its content changed (3 bytes as before)");
  Write(folder.File("a"), "three");
  EXPECT_EQ(FingerprintChange(one, FingerprintOf(folder.File("a"))),
            "a: had 3 bytes and has 5 now");
  auto older = FingerprintOf(folder.File("a"));
  older.erase("hash");
  EXPECT_EQ(FingerprintChange(older, FingerprintOf(folder.File("a"))), "");
}

TEST(FingerprintTest, OfAFolderIsThatOfAllFilesButLocks) {
  const testing::TempFolder folder;
  Write(folder.File("a"), "one");
  const auto before = FingerprintOf(folder.path());
  EXPECT_EQ(before["files"], 1);
  Write(folder.File("lock"), "process 1");
  EXPECT_EQ(FingerprintOf(folder.path()), before);
  std::filesystem::rename(folder.File("a"), folder.File("b"));
  EXPECT_THAT(FingerprintChange(before, FingerprintOf(folder.path())), HasSubstr("changed"));
  EXPECT_THAT(testing::MessageOf([&] { FingerprintOf(folder.File("c")); }), HasSubstr("no such"));
}

}  // namespace
}  // namespace kibitz::io
