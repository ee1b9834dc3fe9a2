// Resuming with something else than before: another input of the same name and size, another
// network, another oracle, other options. Nothing is mixed in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/decoder_records.h"
#include "tests/support/lc0_file.h"
#include "tests/support/small_runs.h"
#ifdef KIBITZ_HAS_TORCH
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#endif

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Ran;
using testing::ReadWhole;
using testing::SmallRuns;

// Replaces text in place: the file keeps its name and size.
void Change(const std::string& path, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  const std::string bytes = ReadWhole(path);
  const size_t place = bytes.find(from);
  ASSERT_NE(place, std::string::npos);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(place));
  file << to;
}

void ExpectDone(const std::vector<std::string>& words) {
  const Ran ran = testing::RunCommand(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
}

void ExpectRefused(const std::vector<std::string>& words, const std::string& which) {
  const Ran ran = testing::RunCommand(words);
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_THAT(ran.err, AllOf(HasSubstr(which), HasSubstr("changed")));
}

TEST(ResumeTest, PrecomputeSeesAnInputChangedInPlace) {
  const SmallRuns runs;
  ExpectDone(runs.Precompute("shards", {"--shards", "1"}));
  ExpectDone(runs.Precompute("data"));
  ExpectDone(runs.Precompute("data"));
  Change(runs.evaluations(), "\"depth\":2", "\"depth\":3");
  ExpectRefused(runs.Precompute("shards", {"--shards", "1"}), "evals.jsonl");
  ExpectRefused(runs.Precompute("data"), "evals.jsonl");
}

TEST(ResumeTest, OraclesSeeAnotherNetwork) {
  const SmallRuns runs;
  ExpectDone(runs.OracleGames("a.parquet"));
  ExpectDone(runs.OracleGames("a.parquet"));
  testing::WriteLc0File(runs.net(), {.seed = 2});
  ExpectRefused(runs.OracleGames("a.parquet"), "net.pb");
  ExpectDone(runs.OracleGames("a.parquet", {"--fresh"}));
}

TEST(ResumeTest, OraclesSeeAnotherPgnOfTheSameSize) {
  const SmallRuns runs;
  ExpectDone(runs.OracleVariations("a.parquet"));
  ExpectDone(runs.OracleEvals("b.parquet"));
  Change(runs.games(), "3. Bb5 a6", "3. Bc4 d6");
  ExpectRefused(runs.OracleVariations("a.parquet"), "games.pgn");
  ExpectRefused(runs.OracleEvals("b.parquet"), "games.pgn");
}

TEST(ResumeTest, GenerateSeesAnotherOracle) {
  const SmallRuns runs;
  ExpectDone(runs.Generate("raws"));
  ExpectDone(runs.Generate("raws", {"--first", "2"}));
  const Ran ran = testing::RunCommand(runs.Generate("raws", {"--oracle", "snake", "--first", "4"}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("/oracle is"), HasSubstr("snake")));
  const Ran explored = testing::RunCommand(runs.Generate("raws", {"--explore", "0.5"}));
  EXPECT_EQ(explored.code, 1);
  EXPECT_THAT(explored.err, HasSubstr("/options/explore"));
}

TEST(ResumeTest, ArenaSeesAnotherNetworkOfTheSameSize) {
  const SmallRuns runs;
  const auto match = [&] {
    std::vector<std::string> words = runs.ArenaMatch("match");
    words[3] = runs.net();
    return words;
  };
  ExpectDone(match());
  testing::WriteLc0File(runs.net(), {.seed = 2});
  EXPECT_THAT(testing::RunCommand(match()).err, HasSubstr("changed"));
}

#ifdef KIBITZ_HAS_TORCH
TEST(ResumeTest, TrainingTellsWhatChanged) {
  const SmallRuns runs;
  ExpectDone(runs.Finetune("run", {"--max-steps", "3"}));
  const Ran same = testing::RunCommand(runs.Finetune("run", {"--max-steps", "4", "--strict"}));
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.err, ::testing::Not(HasSubstr("changes")));
  const std::vector<std::string> other = {"--max-steps", "6",      "--learning-rate",
                                          "0.002",       "--seed", "7"};
  std::vector<std::string> strict = other;
  strict.emplace_back("--strict");
  const Ran refused = testing::RunCommand(runs.Finetune("run", strict));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("training.learning_rate was 0.001 and is 0.002 now"));
  const Ran resumed = testing::RunCommand(runs.Finetune("run", other));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("resuming with changes: "),
                                 HasSubstr("training.learning_rate was 0.001 and is 0.002 now"),
                                 HasSubstr("training.seed was 42 and is 7 now")));
  const io::Value checkpoint = io::ReadPt(runs.File("run/checkpoint_step_000000006.pt"));
  EXPECT_THAT(io::ToTree(checkpoint.Get("kibitz").Get("changes")).dump(),
              AllOf(HasSubstr("step 4"), HasSubstr("learning_rate")));
}

TEST(ResumeTest, TrainingSeesOtherData) {
  const SmallRuns runs;
  ExpectDone(runs.Finetune("run", {"--max-steps", "3"}));
  testing::WriteSearches(runs.searches(), {.count = 40, .seed = 9});
  EXPECT_THAT(testing::RunCommand(runs.Finetune("run", {"--max-steps", "4", "--strict"})).err,
              HasSubstr("data.variation_parquet_dir: searches.parquet"));
}
#endif

}  // namespace
}  // namespace kibitz
