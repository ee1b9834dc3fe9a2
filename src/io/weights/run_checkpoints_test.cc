#include "io/weights/run_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunCheckpointsTest, AMissingBestNamesTheNewestCheckpoint) {
  const testing::TempFolder folder;
  const std::string best = folder.File("best.pt");
  const auto message = [&] { return testing::MessageOf([&] { ReadPt(best); }); };
  EXPECT_THAT(message(), AllOf(HasSubstr("cannot read " + best), Not(HasSubstr("newest"))));
  for (const char* name : {"checkpoint_step_000000900.pt", "checkpoint_step_000001000.pt",
                           "checkpoint_step_000001100.pt.tmp"}) {
    std::ofstream(folder.File(name)) << "x";
  }
  EXPECT_THAT(message(), HasSubstr("newest checkpoint of this run is " +
                                   folder.File("checkpoint_step_000001000.pt")));
}

TEST(RunCheckpointsTest, NoFolderHasNone) { EXPECT_TRUE(ListCheckpoints("/nowhere").empty()); }

}  // namespace
}  // namespace kibitz::io
