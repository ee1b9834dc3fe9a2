#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace kibitz {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Bad("{} is odd", number);
  return number / 2;
}

TEST(ErrorTest, ResultHasValueOrReason) {
  EXPECT_EQ(*Half(4), 2);
  EXPECT_EQ(Half(4).reason(), "");
  EXPECT_FALSE(Half(3));
  EXPECT_EQ(Half(3).reason(), "3 is odd");
  EXPECT_EQ(Half(8).OrThrow("here"), 4);
  try {
    Half(3).OrThrow("numbers.txt:7");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "numbers.txt:7: 3 is odd");
    EXPECT_EQ(error.kind(), Error::Kind::kFailed);
  }
}

TEST(ErrorTest, KindsAndSystemErrors) {
  EXPECT_EQ(Error::Usage("{} is wrong", 1).kind(), Error::Kind::kUsage);
  errno = ENOENT;
  EXPECT_EQ(Error::System("cannot read x").message(), "cannot read x: No such file or directory");
}

TEST(ErrorDeathTest, CheckAbortsWithThePlace) {
  EXPECT_DEATH(CHECK(1 + 1 == 3), "error_test.cc:.*1 \\+ 1 == 3");
  EXPECT_DEATH((void)*Half(3), "CHECK");
}

}  // namespace
}  // namespace kibitz
