// Training on several ranks under mpirun: the same as one rank with as much more in a batch, and
// what happens when a rank dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "io/weights/state_dict.h"
#include "io/weights/torch_file.h"
#include "tests/support/job.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Joined;
using testing::Ran;
using testing::Words;

const std::string kProgram = testing::ProgramPath("kibitz");

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_MPIRUN(); }

  Ran Run(int ranks, const Words& words) const {
    return testing::RunCommand(testing::UnderMpirun(ranks, words));
  }

  // One rank with twice the batch, then two ranks. train(run, batch) gives the command.
  template <typename Train>
  void ExpectTwoRanksAsOne(const Train& train, int batch) const {
    const Ran one = Run(1, train("one", 2 * batch));
    ASSERT_EQ(one.code, 0) << one.err;
    const Ran two = Run(2, train("two", batch));
    ASSERT_EQ(two.code, 0) << two.err;
    ExpectSame("one", "two", json::parse(one.out)["steps"]);
  }

  // Weights and losses after `steps` steps are the same.
  void ExpectSame(const std::string& a, const std::string& b, int steps) const {
    const auto weights = [&](const std::string& run) {
      const std::string path = folder_.File(fmt::format("{}/checkpoint_step_{:09}.pt", run, steps));
      return io::StateDict::From(io::ReadPt(path), path);
    };
    const io::StateDict wanted = weights(a);
    const io::StateDict found = weights(b);
    double difference = 0;
    for (const io::NamedTensor& item : wanted.tensors()) {
      if (item.tensor.type != io::DType::kF32) continue;
      const auto expected = io::ToFloats(item.tensor);
      const auto other = found.Floats(item.name, item.tensor.shape);
      for (size_t i = 0; i < expected.size(); ++i) {
        difference = std::max(difference, static_cast<double>(std::abs(expected[i] - other[i])));
      }
    }
    EXPECT_LE(difference, 1e-5) << a << " and " << b;
    const auto lines = [&](const std::string& run) {
      std::vector<json> read;
      std::ifstream file(folder_.File(run + "/metrics.jsonl"));
      for (std::string line; std::getline(file, line);) read.push_back(json::parse(line));
      return read;
    };
    const auto expected = lines(a);
    const auto other = lines(b);
    ASSERT_EQ(expected.size(), other.size());
    ASSERT_GT(expected.size(), 0);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (const auto& [name, value] : expected[i].items()) {
        if (!value.is_number_float()) continue;
        EXPECT_NEAR(value.get<double>(), other[i].at(name).get<double>(),
                    1e-4 * std::max(1.0, std::abs(value.get<double>())))
            << name << " at " << expected[i]["step"];
      }
    }
  }

  // A training command in this folder, with what all of them share.
  Words Train(const Words& command, const std::string& run, int batch,
              std::string_view more) const {
    Words words = Joined(Joined({kProgram}, command),
                         {"--run-name", run, "--batch-size", std::to_string(batch),
                          "--checkpoint-dir", folder_.path(), "--threads", "1",
                          "--log-every-n-steps", "3", "--keep-checkpoints", "0", "--json"});
    for (std::string_view word : SplitWords(more)) words.emplace_back(word);
    return words;
  }
  Words Decoder(const std::string& run, int batch, int steps = 12) const {
    const std::string data = testing::SourcePath("examples/decoder/");
    return Train(
        {"decoder", "finetune", "--pretrain-parquet-dir", data + "games.parquet",
         "--variation-parquet-dir", data + "searches.parquet", "--val-variation-parquet-dir",
         data + "searches.parquet", "--max-steps", std::to_string(steps)},
        run, batch,
        "--embed-dim 32 --num-heads 2 --num-layers 2 --d-ff 48 --n-buckets 20 "
        "--value-hidden-size 16 --num-fourier-freq 8 --model.max-seq-len 512 "
        "--data.max-seq-len 512 --val-batches 2 --variation-ratio 0.5 --num-epochs 0 "
        "--save-every-n-steps 4 --gradient-accumulation-steps 2 --learning-rate 1e-3");
  }

  testing::TempFolder folder_;
};

TEST_F(RanksTest, DecoderIsThatOfOneRank) {
  const Ran one = Run(1, Decoder("one", 6));
  ASSERT_EQ(one.code, 0) << one.err;
  for (const int ranks : {2, 3}) {
    const std::string name = std::to_string(ranks) + "-ranks";
    const Ran ran = Run(ranks, Decoder(name, 6 / ranks));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(json::parse(ran.out)["steps"], 12) << "one report, of rank 0: " << ran.out;
    ExpectSame("one", name, 12);
  }
}

// The data end within a batch: some ranks have nothing in it.
TEST_F(RanksTest, PolicyIsThatOfOneRank) {
  const std::string rows =
      testing::SourcePath("tests/golden/policy/rows/lichess_db_eval.jsonl.zst");
  const std::string data = folder_.File("data");
  const Ran made = testing::RunCommand({kProgram, "policy", "precompute", rows, "--out", data,
                                        "--val-share", "0.1", "--rows", "150", "--quiet"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto train = [&](const std::string& run, int batch) {
    return Train({"policy", "train", "--data-dir", data}, run, batch,
                 "--num-epochs 2 --num-layers 2 --hidden-channels 8 --save-every-n-steps 5");
  };
  ExpectTwoRanksAsOne(train, 12);
}

TEST_F(RanksTest, Twenty48IsThatOfOneRank) {
  const std::string raws = folder_.File("raws");
  const std::string pack = folder_.File("pack");
  ASSERT_EQ(testing::RunCommand({kProgram, "2048", "generate", "--games", "4", "--depth", "1",
                                 "--max-moves", "120", "--out", raws, "--quiet"})
                .code,
            0);
  ASSERT_EQ(testing::RunCommand({kProgram, "2048", "pack", raws, "--out", pack}).code, 0);
  const auto train = [&](const std::string& run, int batch) {
    return Train({"2048", "train", "--dataset-dir", pack}, run, batch,
                 "--num-epochs 1 --save-every-n-steps 50 --val-run-pct 0");
  };
  ExpectTwoRanksAsOne(train, 31);
}

TEST_F(RanksTest, ResumesWithAnotherNumberOfRanks) {
  ASSERT_EQ(Run(1, Decoder("one", 6)).code, 0);
  ASSERT_EQ(Run(2, Decoder("mixed", 3, 5)).code, 0);
  const Ran rest = Run(3, Decoder("mixed", 2));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(json::parse(rest.out)["resumed"], true);
  ExpectSame("one", "mixed", 12);
}

TEST_F(RanksTest, AKilledRankEndsTheRunAndItResumes) {
  ASSERT_EQ(Run(1, Decoder("one", 4)).code, 0);
  for (int killed = 0; killed < 2; ++killed) {
    const Words long_run = Decoder("killed", 2, 100000);
    const testing::RanksByHand job(2, long_run, folder_);
    const std::string first = folder_.File("killed/checkpoint_step_000000004.pt");
    for (int i = 0; i < 600 && !std::filesystem::exists(first); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ASSERT_TRUE(std::filesystem::exists(first)) << job.Errors(0);
    const auto start = std::chrono::steady_clock::now();
    // The kibitz command runs kibitz-train in its own process.
    kill(job.child(killed), SIGKILL);
    EXPECT_EQ(job.Code(killed), -SIGKILL);
    EXPECT_EQ(job.Code(1 - killed), 1);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_THAT(job.Errors(1 - killed), HasSubstr(fmt::format("rank {} ", killed)));
    std::filesystem::remove_all(folder_.File("killed-copy"));
    std::filesystem::rename(folder_.File("killed"), folder_.File("killed-copy"));
    // Goes on from the fourth step, as if nothing had happened.
    std::filesystem::create_directory(folder_.File("killed"));
    std::filesystem::copy(folder_.File("killed-copy/checkpoint_step_000000004.pt"), first);
    std::filesystem::copy(folder_.File("killed-copy/metrics.jsonl"),
                          folder_.File("killed/metrics.jsonl"));
    const Ran rest = Run(2, Decoder("killed", 2));
    ASSERT_EQ(rest.code, 0) << rest.err;
    ExpectSame("one", "killed", 12);
    std::filesystem::remove_all(folder_.File("killed"));
  }
}

}  // namespace
}  // namespace kibitz
