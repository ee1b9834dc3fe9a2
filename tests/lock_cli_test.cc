// Two commands that write to one place: the second one is refused, says who holds the place, and
// has touched nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/write_lock.h"
#include "io/bytes/fingerprint.h"
#include "tests/support/child.h"
#include "tests/support/small_runs.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Child;
using ::testing::HasSubstr;
using testing::Ran;
using testing::SmallRuns;

// Its files but for locks, by content.
std::string Content(const std::string& folder) { return io::FingerprintOf(folder).dump(); }

#ifdef KIBITZ_HAS_TORCH
TEST(LockTest, FreshDoesNotTouchARunThatIsTraining) {
  const SmallRuns runs;
  Child first(runs.Finetune("run", {"--max-steps", "100000", "--save-every-n-steps", "100000"}));
  const std::string metrics = runs.File("run/metrics.jsonl");
  ASSERT_TRUE(first.WaitFor([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  const uint64_t bytes = fs::file_size(metrics);
  const Ran second = testing::RunCommand(runs.Finetune("run", {"--fresh"}));
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, AllOf(HasSubstr("is being written by process"), HasSubstr("since 20"),
                                HasSubstr("decoder finetune")));
  EXPECT_GE(fs::file_size(metrics), bytes);
  EXPECT_TRUE(first.running());
  first.Kill(SIGKILL);
  first.Wait();
  // A lock does not outlive its process.
  const Ran third = testing::RunCommand(runs.Finetune("run", {"--fresh", "--max-steps", "2"}));
  EXPECT_EQ(third.code, 0) << third.err;
}
#endif

// Runs the command twice: while another process (this one) has the lock, then without.
void ExpectRefusedThenDone(const std::vector<std::string>& words, const std::string& folder,
                           const std::function<WriteLock()>& take) {
  {
    const WriteLock lock = take();
    const std::string before = Content(folder);
    const Ran ran = testing::RunCommand(words);
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("is being written by process"), HasSubstr("since 20")));
    EXPECT_EQ(Content(folder), before);
  }
  const Ran ran = testing::RunCommand(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(LockTest, OracleCommandsLockTheirFile) {
  const SmallRuns runs;
  for (const auto& words :
       {runs.OracleGames("a.parquet", {"--fresh"}), runs.OracleVariations("a.parquet", {"--fresh"}),
        runs.OracleEvals("a.parquet", {"--fresh"})}) {
    ExpectRefusedThenDone(words, runs.path(),
                          [&] { return WriteLock::OfFile(runs.File("a.parquet")); });
  }
}

TEST(LockTest, GenerateAndPackLockTheirFolder) {
  const SmallRuns runs;
  for (const auto& words : {runs.Generate("raws"), runs.Pack("pack", {"--overwrite"})}) {
    const std::string folder =
        words.back() == "--overwrite" ? runs.File("pack") : runs.File("raws");
    ExpectRefusedThenDone(words, runs.path(), [&] { return WriteLock::OfFolder(folder); });
  }
  const std::string out = runs.File("both");
  ExpectRefusedThenDone({testing::ProgramPath("kibitz"), "2048", "merge", runs.File("pack"),
                         "--out", out, "--overwrite"},
                        runs.path(), [&] { return WriteLock::OfFolder(out); });
}

TEST(LockTest, PrecomputeAndMergeLockTheirWork) {
  const SmallRuns runs;
  ExpectRefusedThenDone(runs.Precompute("shards", {"--shards", "1"}), runs.path(), [&] {
    return WriteLock::OfFolder(runs.File("shards/shard-0000-of-0001"));
  });
  ExpectRefusedThenDone(runs.Precompute("data"), runs.path(),
                        [&] { return WriteLock::OfFolder(runs.File("data/work")); });
  ExpectRefusedThenDone({testing::ProgramPath("kibitz"), "policy", "merge", runs.File("shards"),
                         "--out", runs.File("merged"), "--memory", "128M"},
                        runs.path(), [&] { return WriteLock::OfFolder(runs.File("merged/work")); });
}

TEST(LockTest, ArenaLocksItsJournal) {
  const SmallRuns runs;
  ASSERT_EQ(testing::RunCommand(runs.ArenaMatch("match")).code, 0);
  ExpectRefusedThenDone(runs.ArenaMatch("match", {"--fresh"}), runs.path(),
                        [&] { return WriteLock::OfFile(runs.File("match/journal.jsonl")); });
}

TEST(LockTest, AFolderThatCannotBeWrittenIsNamedWithARemedy) {
  if (geteuid() == 0) {
    // Root may write everywhere: a file in the way of the folder gives the same path.
    const SmallRuns runs;
    for (const auto& words :
         {runs.Generate("games.pgn/raws"), runs.Pack("games.pgn/pack"),
          runs.OracleGames("games.pgn/a.parquet"), runs.ArenaMatch("games.pgn/match"),
          runs.Precompute("games.pgn/data")}) {
      const Ran ran = testing::RunCommand(words);
      EXPECT_EQ(ran.code, 1);
      EXPECT_THAT(ran.err, AllOf(HasSubstr("games.pgn/"), ::testing::Not(HasSubstr("unexpected"))));
    }
    return;
  }
  const SmallRuns runs;
  fs::create_directory(runs.File("ro"));
  fs::permissions(runs.File("ro"), fs::perms::owner_read | fs::perms::owner_exec);
  for (const auto& words : {runs.Generate("ro/raws"), runs.Pack("ro/pack"),
                            runs.OracleGames("ro/a.parquet"), runs.Precompute("ro/data")}) {
    const Ran ran = testing::RunCommand(words);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, AllOf(HasSubstr("/ro/"), HasSubstr("Permission denied"),
                               ::testing::Not(HasSubstr("unexpected"))));
  }
}

}  // namespace
}  // namespace kibitz
