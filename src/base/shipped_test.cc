#include "base/shipped.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/test_data.h"

namespace kibitz {
namespace {

TEST(ShippedTest, TheEnvironmentComesFirst) {
  const testing::TempFolder folder;
  std::filesystem::create_directories(folder.File("models/mine"));
  ASSERT_EQ(setenv("KIBITZ_SHARE", folder.path().c_str(), 1), 0);
  EXPECT_EQ(ShareFolders().front(), folder.path());
  EXPECT_EQ(FindShipped("models/mine"), folder.File("models/mine"));
  EXPECT_EQ(FindShipped("models/nobody-has-this"), std::nullopt);
  unsetenv("KIBITZ_SHARE");
  EXPECT_NE(ShareFolders().front(), folder.path());
}

TEST(ShippedTest, ProgramFolderHoldsThisTest) {
  EXPECT_TRUE(testing::Exists(ProgramFolder() + "/kibitz_base_test"));
}

}  // namespace
}  // namespace kibitz
