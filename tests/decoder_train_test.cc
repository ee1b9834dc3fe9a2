// Training as its users run it: whole, interrupted, killed, resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "io/weights/state_dict.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#include "tests/support/decoder_records.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;
using testing::ReadWhole;

const std::string kProgram = testing::ProgramPath("kibitz");

// Weights by name.
using Tensors = std::map<std::string, io::Value>;

Tensors TensorsOf(const std::string& path) {
  Tensors tensors;
  const io::StateDict weights = io::StateDict::From(io::ReadPt(path), path);
  for (const io::NamedTensor& item : weights.tensors()) {
    tensors.emplace(item.name, io::Value::Of(item.tensor));
  }
  return tensors;
}

class DecoderTrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::WriteGames(folder_.File("g.parquet"), {.count = 40, .max_plies = 20});
    testing::WriteGames(folder_.File("val-g.parquet"), {.count = 4, .seed = 2, .max_plies = 20});
    testing::WriteSearches(folder_.File("v.parquet"), {.count = 40});
    testing::WriteSearches(folder_.File("val.parquet"), {.count = 6, .seed = 2});
    std::ofstream(NoModel()) << Sections();
    std::ofstream(Config()) << Sections() << R"(model:
  embed_dim: 16
  num_heads: 2
  num_layers: 2
  max_seq_len: 300
  d_ff: 24
  n_buckets: 20
  wl_sigma: 0.4
  value_hidden_size: 16
  num_fourier_freq: 8
)";
  }

  std::string Sections() const {
    return fmt::format(R"(project_name: "test"
run_name: "run"
data:
  pretrain_parquet_dir: "{0}/g.parquet"
  variation_parquet_dir: "{0}/v.parquet"
  val_variation_parquet_dir: "{0}/val.parquet"
  val_batches: 1
  batch_size: 2
  num_workers: 4
  max_seq_len: 300
  variation_ratio: 0.5
  max_variations: 3
  max_depth: 5
  tau_base: 0.3
  tau_alpha: 1.0
training:
  learning_rate: 1.0e-3
  weight_decay: 0.1
  gradient_accumulation_steps: 2
  num_epochs: 0
  max_steps: 60
  warmup_steps: 10
  use_amp: true
  log_every_n_steps: 5
  save_every_n_steps: 4
  threads: 1
  checkpoint_dir: "{0}"
loss:
  final_move_weight: 5.0
  thinking_move_weight: 2.0
  board_weight: 1.0
  wl_weight: 1.0
  d_weight: 1.0
)",
                       folder_.path());
  }

  std::string Config() const { return folder_.File("config.yaml"); }
  std::string NoModel() const { return folder_.File("no-model.yaml"); }
  std::vector<std::string> Command(const std::string& run,
                                   std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {kProgram,     "decoder", "finetune", "--config", Config(),
                                      "--run-name", run,       "--json",   "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Pretrains for three steps; the run's folder.
  std::string Pretrain(const std::string& run, std::vector<std::string> more = {}) const {
    const std::string words =
        "--embed-dim 16 --num-heads 2 --num-layers 2 --d-ff 24 --n-buckets 20 --value-hidden-size "
        "16 --num-fourier-freq 8 --max-steps 3 --threads 1 --batch-size 2 --json";
    std::vector<std::string> command = {kProgram, "decoder", "pretrain"};
    for (std::string_view word : SplitWords(words)) command.emplace_back(word);
    for (const std::string& word :
         {std::string("--parquet-dir"), folder_.File("g.parquet"), std::string("--checkpoint-dir"),
          folder_.path(), std::string("--run-name"), run}) {
      command.push_back(word);
    }
    command.insert(command.end(), more.begin(), more.end());
    const Ran ran = testing::RunCommand(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    pretrain_messages_ = ran.err;
    return folder_.File(run);
  }
  void ExpectSameRuns(const std::string& a, const std::string& b) const {
    EXPECT_EQ(ReadWhole(folder_.File(a + "/metrics.jsonl")),
              ReadWhole(folder_.File(b + "/metrics.jsonl")));
    const auto last = [&](const std::string& run) {
      return TensorsOf(folder_.File(run + "/checkpoint_step_000000060.pt"));
    };
    EXPECT_EQ(last(a), last(b));
  }

  testing::TempFolder folder_;
  mutable std::string pretrain_messages_;
};

pid_t Start(const std::vector<std::string>& words) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  (void)freopen("/dev/null", "w", stdout);
  (void)freopen("/dev/null", "w", stderr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// How the process ended after the signal.
int StatusAfter(pid_t child, int signal) {
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Starts the command and kills it after a while; false when it had ended by itself.
bool KilledAfter(const std::vector<std::string>& words, std::chrono::duration<double> wait) {
  const pid_t child = Start(words);
  std::this_thread::sleep_for(wait);
  return WIFSIGNALED(StatusAfter(child, SIGKILL));
}

TEST_F(DecoderTrainTest, KilledTwentyTimesItEndsAsIfNeverDisturbed) {
  const auto start = std::chrono::steady_clock::now();
  const Ran whole = testing::RunCommand(Command("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(json::parse(whole.out)["steps"], 60);
  EXPECT_TRUE(testing::Exists(folder_.File("whole/best.pt")));
  Rng rng({.seed = 20});
  int kills = 0;
  double longest = std::chrono::duration<double>(took).count();
  for (int i = 0; i < 100 && kills < 20; ++i) {
    if (KilledAfter(Command("killed"), std::chrono::duration<double>(longest * rng.Uniform()))) {
      ++kills;
    } else {
      longest *= 0.8;  // The machine became faster.
    }
    if (testing::Exists(folder_.File("killed/checkpoint_step_000000060.pt"))) {
      // Done before it was killed 20 times: compare, and on with another run.
      ExpectSameRuns("whole", "killed");
      std::filesystem::remove_all(folder_.File("killed"));
    }
  }
  EXPECT_EQ(kills, 20);
  const Ran last = testing::RunCommand(Command("killed"));
  ASSERT_EQ(last.code, 0) << last.err;
  ExpectSameRuns("whole", "killed");
}

TEST_F(DecoderTrainTest, StopsOnCtrlCAndByLimitsAndResumes) {
  const Ran whole = testing::RunCommand(Command("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Ran some = testing::RunCommand(Command("parts", {"--max-steps", "17"}));
  ASSERT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(json::parse(some.out)["stopped"], "all steps done");
  const Ran more = testing::RunCommand(Command("parts", {"--max-seconds", "0.05"}));
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(json::parse(more.out)["stopped"], "stopped at the time limit");
  EXPECT_EQ(json::parse(more.out)["resumed"], true);
  const pid_t child = Start(Command("parts"));
  // Behind the steps so far there are at least two more when the next checkpoint is there.
  const int64_t before = json::parse(more.out)["steps"];
  const std::string next =
      folder_.File(fmt::format("parts/checkpoint_step_{:09}.pt", before / 4 * 4 + 4));
  while (!testing::Exists(next)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int status = StatusAfter(child, SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Ran rest = testing::RunCommand(Command("parts"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  ExpectSameRuns("whole", "parts");
}

// Pretraining leaves the thinking head as it was drawn; finetuning starts it as a copy of the
// policy head, and everything else as it was pretrained.
TEST_F(DecoderTrainTest, FinetuningStartsTheThinkingHeadAsACopyOfThePolicyHead) {
  const std::string best =
      Pretrain("pre", {"--val-parquet-dir", folder_.File("val-g.parquet")}) + "/best.pt";
  const Ran tuned = testing::RunCommand(Command(
      "tuned", {"--pretrain-checkpoint", best, "--max-steps", "1", "--learning-rate", "0"}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  Tensors expected = TensorsOf(best);
  for (const char* part : {"weight", "bias"}) {
    io::Value& thinking = expected.at(fmt::format("thinking_policy_head.{}", part));
    const io::Value& policy = expected.at(fmt::format("policy_head.{}", part));
    EXPECT_NE(thinking, policy);
    thinking = policy;
  }
  EXPECT_EQ(TensorsOf(json::parse(tuned.out)["checkpoint"]), expected);
  // A finetuned checkpoint keeps its own thinking head.
  const Ran longer =
      testing::RunCommand(Command("longer", {"--pretrain-checkpoint", best, "--max-steps", "3"}));
  ASSERT_EQ(longer.code, 0) << longer.err;
  const std::string finetuned = json::parse(longer.out)["checkpoint"];
  const Ran again = testing::RunCommand(Command(
      "again", {"--pretrain-checkpoint", finetuned, "--max-steps", "1", "--learning-rate", "0"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(TensorsOf(json::parse(again.out)["checkpoint"]), TensorsOf(finetuned));
}

TEST_F(DecoderTrainTest, TheModelIsThatOfTheCheckpoint) {
  const std::string folder = Pretrain("pre");
  EXPECT_THAT(pretrain_messages_,
              HasSubstr("no validation data (data.val_parquet_dir is not set)"));
  const auto finetune = [&](const std::string& run, const std::string& checkpoint,
                            std::vector<std::string> more) {
    std::vector<std::string> words = {
        kProgram,     "decoder", "finetune",    "--config", NoModel(),
        "--run-name", run,       "--max-steps", "1",        "--pretrain-checkpoint",
        checkpoint,   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return testing::RunCommand(words);
  };
  // Without validation data there is no best.pt: the message says what to take instead.
  const std::string last = folder + "/checkpoint_step_000000003.pt";
  const Ran missing = finetune("x", folder + "/best.pt", {});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("newest checkpoint of this run is " + last));
  const Ran ran = finetune("tuned", last, {});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("model from " + last + ": embed_dim 16, num_heads 2"));
  const json config = io::ToTree(io::ReadPt(json::parse(ran.out)["checkpoint"]).Get("config"));
  EXPECT_EQ(config["model"]["embed_dim"], 16);
  EXPECT_EQ(config["model"]["max_seq_len"], 300);  // Pretraining's 256 is too short.
  EXPECT_TRUE(testing::Exists(folder_.File("tuned/best.pt")));
  const Ran other = finetune("y", last, {"--embed-dim", "32"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.embed_dim is 32, but the weights to start from, " + last +
                                   ", have 16"));
  // Parts that the weights lack can be added; they start at 0.
  const Ran added =
      finetune("added", last, {"--line-votes", "--value-votes", "--learning-rate", "0"});
  ASSERT_EQ(added.code, 0) << added.err;
  Tensors tensors = TensorsOf(json::parse(added.out)["checkpoint"]);
  EXPECT_EQ(tensors.count("line_vote.weight"), 1U);
  EXPECT_EQ(tensors.count("value_vote.weight"), 1U);
  const auto step = [](const Ran& run) {
    return json::parse(run.out)["validation"]["total_loss"].get<double>();
  };
  EXPECT_NEAR(step(added), step(finetune("as-it-was", last, {"--learning-rate", "0"})), 1e-5);
  EXPECT_THAT(finetune("z", last, {"--value-votes"}).err,
              HasSubstr("value_votes is true without line_votes"));
  EXPECT_THAT(finetune("z", last, {"--line-votes", "--compared-votes"}).err,
              HasSubstr("compared_votes is true without value_votes"));
  const Ran compared =
      finetune("compared", last, {"--line-votes", "--value-votes", "--compared-votes"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_EQ(TensorsOf(json::parse(compared.out)["checkpoint"]).count("compare_vote.weight"), 1U);
}

TEST_F(DecoderTrainTest, MistakesAreExplained) {
  const auto error = [&](std::vector<std::string> more) {
    return testing::RunCommand(Command("x", std::move(more))).err;
  };
  EXPECT_THAT(error({"--variation-parquet-dir", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(error({"--max-seq-len", "100"}), HasSubstr("say which"));
  EXPECT_THAT(error({"--data.max-seq-len", "500"}), HasSubstr("model.max_seq_len only 300"));
  EXPECT_THAT(error({"--learning-rat", "1"}), HasSubstr("did you mean --training.learning-rate?"));
  EXPECT_THAT(error({"--num-heads", "3"}), HasSubstr("num_heads"));
  EXPECT_THAT(error({"--device", "tpu"}), HasSubstr("expected cpu, cuda or cuda:N"));
  EXPECT_THAT(error({"--device", "cuda:99"}), HasSubstr("use --device cpu"));
  std::vector<std::string> loud = Command("loud", {"--max-steps", "1"});
  std::erase(loud, "--quiet");
  loud.insert(loud.begin(), {"env", "KIBITZ_BF16=off"});
  EXPECT_THAT(testing::RunCommand(loud).err, HasSubstr("use_amp has no effect here"));
  ASSERT_EQ(testing::RunCommand(Command("y", {"--max-steps", "1"})).code, 0);
  EXPECT_THAT(testing::RunCommand(Command("y", {"--embed-dim", "32"})).err,
              HasSubstr("model.embed_dim 16, the config says 32"));
}

TEST(DecoderMigrateTest, MigratesOlderCheckpoints) {
  const testing::TempFolder folder;
  const std::string legacy = testing::GoldenPath("decoder/migrate/legacy.pt");
  for (const char* name : {"new.pt", "new.safetensors"}) {
    const Ran ran = testing::RunCommand(
        {kProgram, "decoder", "migrate", legacy, "--out", folder.File(name), "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_FALSE(json::parse(ran.out)["changes"].empty());
  }
  const Ran again = testing::RunCommand({kProgram, "decoder", "migrate", folder.File("new.pt"),
                                         "--out", folder.File("b.pt"), "--json"});
  EXPECT_TRUE(json::parse(again.out)["changes"].empty());
}

}  // namespace
}  // namespace kibitz
