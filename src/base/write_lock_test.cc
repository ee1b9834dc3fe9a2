#include "base/write_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(WriteLockTest, IsForOneAtATimeAndSaysWhoHasIt) {
  const testing::TempFolder folder;
  const std::string runs = folder.File("a/b");
  std::optional<WriteLock> first(WriteLock::OfFolder(runs));
  EXPECT_THAT(testing::MessageOf([&] { WriteLock::OfFolder(runs); }),
              MatchesRegex(".*a/b: is being written by process [0-9]+ on .* since "
                           "20[0-9-]+ [0-9:]+ UTC: .*base_test.*; wait for it.*"));
  first.reset();
  EXPECT_FALSE(testing::Exists(runs + "/lock"));
  EXPECT_EQ(testing::MessageOf([&] { WriteLock::OfFolder(runs); }), "");
}

TEST(WriteLockTest, IsSharedByThoseThatWriteParts) {
  const testing::TempFolder folder;
  const std::string path = folder.File("a");
  {
    const WriteLock one = WriteLock::ShareFile(path);
    {
      const WriteLock two = WriteLock::ShareFile(path);
      EXPECT_NE(testing::MessageOf([&] { WriteLock::OfFile(path); }), "");
    }
    EXPECT_NE(testing::MessageOf([&] { WriteLock::OfFile(path); }), "") << "one still has it";
  }
  EXPECT_FALSE(testing::Exists(path + ".lock"));
  const WriteLock alone = WriteLock::OfFile(path);
  EXPECT_NE(testing::MessageOf([&] { WriteLock::ShareFile(path); }), "");
  const auto held = WriteLock::TryOfFolder(folder.path());
  EXPECT_TRUE(held.has_value());
  EXPECT_FALSE(WriteLock::TryOfFolder(folder.path()).has_value());
}

TEST(WriteLockTest, OfAFileFollowsLinks) {
  const testing::TempFolder folder;
  WriteFileAtomically(folder.File("real"), "x");
  std::filesystem::create_symlink(folder.File("real"), folder.File("link"));
  const WriteLock lock = WriteLock::OfFile(folder.File("real"));
  EXPECT_THAT(testing::MessageOf([&] { WriteLock::OfFile(folder.File("link")); }),
              HasSubstr("is being written by"));
}

TEST(WriteLockTest, SaysWhyAFolderCannotBeMade) {
  EXPECT_THAT(testing::MessageOf([] { WriteLock::OfFolder("/dev/null/a"); }),
              AllOf(HasSubstr("/dev/null/a"), HasSubstr("choose")));
}

}  // namespace
}  // namespace kibitz
