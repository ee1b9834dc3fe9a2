// 'make install' as a C++ user meets it: installed into an empty folder, found by find_package,
// linked, run from elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using ::testing::HasSubstr;
using testing::RunCommand;

TEST(InstallTest, AnotherProgramFindsTheLibraryAndTheModels) {
  const testing::TempFolder folder;
  const std::string prefix = folder.File("prefix");
  for (const char* component : {"kibitz", "libkibitz-dev"}) {
    const auto installed = RunCommand({"cmake", "--install", testing::ProgramPath(""), "--prefix",
                                       prefix, "--component", component});
    ASSERT_EQ(installed.code, 0) << installed.err;
  }
  const auto predicted = RunCommand({prefix + "/bin/kibitz", "policy", "predict", "--model",
                                     prefix + "/share/kibitz/models/policy-small"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("%"));

  const std::string build = folder.File("build");
  const auto configured = RunCommand({"cmake", "-S", testing::SourcePath("examples/library"), "-B",
                                      build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + prefix});
  ASSERT_EQ(configured.code, 0) << configured.err;
  const auto built = RunCommand({"cmake", "--build", build});
  ASSERT_EQ(built.code, 0) << built.out << built.err;
  const auto ran = RunCommand({"env", "KIBITZ_SHARE=" + prefix + "/share/kibitz",
                               build + "/first_move", "7k/6pp/8/8/8/8/8/R3K3 w Q - 0 1"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Ra8#"));
}

}  // namespace
}  // namespace kibitz
