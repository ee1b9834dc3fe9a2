#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using testing::Exists;
using testing::ReadWhole;

class AtomicFileTest : public ::testing::Test {
 protected:
  testing::TempFolder folder_;
  std::string path_ = folder_.File("out.bin");
};

TEST_F(AtomicFileTest, AppearsWholeOnCommit) {
  {
    AtomicFile file(path_);
    file.Write("hello ");
    file.Write(std::string(200000, 'x'));
    file.WriteAt(0, "J");
    EXPECT_EQ(file.size(), 200006U);
    EXPECT_FALSE(Exists(path_));
    file.Commit();
  }
  EXPECT_EQ(ReadWhole(path_), "Jello " + std::string(200000, 'x'));
  EXPECT_FALSE(Exists(path_ + ".tmp"));
}

TEST_F(AtomicFileTest, DevicesAndPipesAreWrittenToAndNotReplaced) {
  if (!Exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_THAT(testing::MessageOf([] { WriteFileAtomically("/dev/full", "x"); }),
              ::testing::HasSubstr("cannot write /dev/full"));
  { AtomicFile abandoned("/dev/full"); }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  WriteFileAtomically(path_, "through");
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStays) {
  WriteFileAtomically(path_, "old");
  {
    AtomicFile file(path_);
    file.Write("new");
  }
  EXPECT_EQ(ReadWhole(path_), "old");
  EXPECT_FALSE(Exists(path_ + ".tmp"));
}

TEST_F(AtomicFileTest, KilledWriterLeavesTheOldFileAndTheNextOneWorks) {
  WriteFileAtomically(path_, "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path_);
    file.Write(std::string(100000, 'n'));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(ReadWhole(path_), "old");
  WriteFileAtomically(path_, "newer");
  EXPECT_EQ(ReadWhole(path_), "newer");
  EXPECT_FALSE(Exists(path_ + ".tmp"));
}

TEST_F(AtomicFileTest, SecondWriterIsRefused) {
  AtomicFile first(path_);
  EXPECT_THROW(AtomicFile{path_}, Error);
  first.Write("1");
  first.Commit();
  EXPECT_EQ(ReadWhole(path_), "1");
}

TEST_F(AtomicFileTest, MissingFolderIsAnError) {
  try {
    AtomicFile file(folder_.File("no/such/file"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("does its folder exist?"));
  }
}

TEST_F(AtomicFileTest, FollowsLinks) {
  WriteFileAtomically(path_, "old");
  const std::string link = folder_.File("link");
  std::filesystem::create_symlink(path_, link);
  WriteFileAtomically(link, "new");
  EXPECT_EQ(ReadWhole(path_), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

}  // namespace
}  // namespace kibitz
