#include "learn/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "base/interrupt.h"
#include "io/weights/run_checkpoints.h"
#include "learn/checkpoint.h"
#include "learn/weights.h"
#include "tests/support/test_data.h"

namespace kibitz::learn {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;

// Fits a line to points that follow from their number.
class LineTrainee : public Trainee {
 public:
  explicit LineTrainee(uint64_t samples) : Trainee(LoopOptions()), samples_(samples) {
    InitWeights(*net_, 3);
  }

  torch::nn::Module& module() override { return *net_; }
  TraineeFacts Facts() const override {
    return {.unit = "points",
            .headline = {"total_loss"},
            .batches_per_epoch = static_cast<double>(samples_),
            .samples = samples_,
            .no_validation = validates ? "" : "val is not set"};
  }
  void StartAt(uint64_t position) override { next_ = position; }
  std::optional<BatchResult> Next() override {
    if (next_ == samples_) return std::nullopt;
    if (on_batch) on_batch(next_);
    const float x = static_cast<float>(next_ % 17) / 17;
    const torch::Tensor in =
        torch::full({1, 1}, next_ == nan_at ? std::numeric_limits<float>::quiet_NaN() : x);
    BatchResult result;
    result.loss = (net_->forward(in) - (3 * x - 1)).square().sum();
    result.means.Add("total_loss", result.loss.item<double>(), 1);
    result.latest = {{"point", static_cast<double>(next_)}};
    result.units = 1;
    result.position = ++next_;
    result.epoch = static_cast<int64_t>(next_ / 100);
    return result;
  }
  Means Validate(const KeepGoing& keep_going) override {
    Means means;
    if (!validates) return means;
    if (on_validation) on_validation();
    if (!keep_going()) return means;
    const torch::NoGradGuard no_grad;
    means.Add("total_loss", (net_->forward(torch::ones({1, 1})) - 2).square().item<double>(), 1);
    return means;
  }

  bool validates = true;
  uint64_t nan_at = ~uint64_t{0};
  std::function<void(uint64_t)> on_batch;
  std::function<void()> on_validation;
  torch::nn::Linear net_ = torch::nn::Linear(1, 1);

 private:
  uint64_t samples_;
  uint64_t next_ = 0;
};

class LoopTest : public ::testing::Test {
 protected:
  RunOptions Options(const std::string& name, int64_t max_steps = 0) const {
    return {.loop = {.learning_rate = 0.05,
                     .weight_decay = 0,
                     .gradient_accumulation_steps = 2,
                     .warmup_steps = 5,
                     .max_steps = max_steps,
                     .log_every_n_steps = 7,
                     .save_every_n_steps = 10,
                     .keep_checkpoints = 2,
                     .checkpoint_dir = folder_.path()},
            .config = {{"model", {{"width", 1}}}},
            .name = name};
  }

  TempFolder folder_;
};

TEST_F(LoopTest, LogCommandGetsTheLinesOfMetrics) {
  LineTrainee trainee(1000);
  RunOptions options = Options("piped", 20);
  options.loop.log_command = "cat > " + folder_.File("piped.jsonl");
  Train(trainee, options);
  EXPECT_EQ(ReadWhole(folder_.File("piped.jsonl")), ReadWhole(folder_.File("piped/metrics.jsonl")));
  EXPECT_FALSE(ReadWhole(folder_.File("piped.jsonl")).empty());
}

TEST_F(LoopTest, LearnsAndReports) {
  LineTrainee line(1000);
  const RunReport report = Train(line, Options("a"));
  EXPECT_EQ(report.why, Stopped::kFinished);
  EXPECT_EQ(report.steps, 500);
  EXPECT_LT(report.last_metrics[0].second, 1e-3);
  EXPECT_LT(report.last_validation[0].second, 1e-2);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("a/best.pt")));
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.File("a"))) {
    checkpoints += entry.path().filename().string().starts_with("checkpoint_step_") ? 1 : 0;
  }
  EXPECT_EQ(checkpoints, 2);
}

// Stopped at odd places and resumed: the same weights, the same metrics, byte for byte.
TEST_F(LoopTest, InterruptedRunsEndLikeWholeOnes) {
  LineTrainee whole(300);
  Train(whole, Options("whole"));
  for (int64_t stop = 13; stop < 150; stop += 13) {
    LineTrainee part(300);
    Train(part, Options("parts", stop));
  }
  LineTrainee last(300);
  const RunReport report = Train(last, Options("parts"));
  EXPECT_TRUE(report.resumed);
  EXPECT_EQ(report.steps, 150);
  EXPECT_TRUE(torch::equal(whole.net_->weight, last.net_->weight));
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

// As after a kill: the newest files are older than what the logs say.
TEST_F(LoopTest, WhatWasLoggedAfterTheLastCheckpointIsDoneAgain) {
  LineTrainee whole(300);
  Train(whole, Options("whole"));
  LineTrainee part(300);
  Train(part, Options("parts", 55));
  std::filesystem::remove(folder_.File("parts/checkpoint_step_000000055.pt"));
  LineTrainee last(300);
  Train(last, Options("parts"));
  EXPECT_TRUE(torch::equal(whole.net_->weight, last.net_->weight));
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

// 20 steps end with a validation on schedule, 23 with a closing one.
TEST_F(LoopTest, AFinishedRunThatIsStartedAgainStaysAsItIs) {
  for (const int64_t steps : {20, 23}) {
    const std::string name = fmt::format("a{}", steps);
    LineTrainee first(300);
    Train(first, Options(name, steps));
    const std::string metrics = ReadWhole(folder_.File(name + "/metrics.jsonl"));
    LineTrainee second(300);
    EXPECT_EQ(Train(second, Options(name, steps)).steps_here, 0);
    EXPECT_EQ(ReadWhole(folder_.File(name + "/metrics.jsonl")), metrics);
    EXPECT_TRUE(torch::equal(first.net_->weight, second.net_->weight));
  }
}

TEST_F(LoopTest, FreshStartsAnew) {
  LineTrainee first(300);
  Train(first, Options("a"));
  LineTrainee second(300);
  RunOptions options = Options("a");
  options.fresh = true;
  const RunReport report = Train(second, options);
  EXPECT_FALSE(report.resumed);
  EXPECT_EQ(report.steps_here, 150);
}

TEST_F(LoopTest, AnotherNetworkIsRefused) {
  LineTrainee first(300);
  Train(first, Options("a", 10));
  RunOptions options = Options("a", 20);
  options.config["model"]["width"] = 2;
  LineTrainee second(300);
  EXPECT_THAT(MessageOf([&] { Train(second, options); }), ::testing::HasSubstr("model.width"));
}

TEST_F(LoopTest, AnotherAmountOfDataIsRefused) {
  LineTrainee first(300);
  Train(first, Options("a", 10));
  LineTrainee second(301);
  EXPECT_THAT(MessageOf([&] { Train(second, Options("a", 20)); }),
              ::testing::HasSubstr("300 samples, the data now has 301"));
}

TEST_F(LoopTest, ANanGradientIsSkipped) {
  LineTrainee line(400);
  line.nan_at = 40;
  const RunReport report = Train(line, Options("a"));
  EXPECT_EQ(report.skipped_updates, 1);
  EXPECT_TRUE(line.net_->weight.isfinite().all().item<bool>());
}

TEST_F(LoopTest, StopsAtTheTimeLimitAndSaves) {
  LineTrainee line(1u << 30);
  RunOptions options = Options("a");
  options.loop.max_seconds = 0.3;
  const RunReport report = Train(line, options);
  EXPECT_EQ(report.why, Stopped::kMaxSeconds);
  EXPECT_EQ(ReadCheckpoint(report.checkpoint).step, report.steps);
}

// Both runs: 300 batches, 30 a step. The second is stopped by the clock in the middle of a step.
TEST_F(LoopTest, TheTimeLimitActsBetweenTheBatchesOfAStep) {
  RunOptions options = Options("whole");
  options.loop.gradient_accumulation_steps = 30;
  options.loop.log_every_n_steps = 2;
  LineTrainee whole(300);
  Train(whole, options);
  options.name = "parts";
  options.loop.max_seconds = 0.2;
  LineTrainee part(300);
  part.on_batch = [](uint64_t number) {
    // Three steps take no time; a batch of the fourth takes a tenth of a second.
    if (number >= 90) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  const RunReport report = Train(part, options);
  EXPECT_EQ(report.why, Stopped::kMaxSeconds);
  EXPECT_EQ(report.steps, 3);
  EXPECT_LT(report.seconds_here, 1.5);  // The step alone would take three seconds.
  options.loop.max_seconds = 0;
  LineTrainee rest(300);
  Train(rest, options);
  EXPECT_TRUE(torch::equal(whole.net_->weight, rest.net_->weight));
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

// In a process of its own, as a signal cannot be taken back.
TEST_F(LoopTest, CtrlCActsBetweenTheBatchesOfAStep) {
  RunOptions options = Options("whole");
  options.loop.gradient_accumulation_steps = 30;
  LineTrainee whole(300);
  Train(whole, options);
  options.name = "parts";
  EXPECT_EXIT(
      {
        CatchInterrupts();
        LineTrainee part(300);
        part.on_batch = [](uint64_t number) {
          if (number == 100) raise(SIGINT);
        };
        const RunReport report = Train(part, options);
        _exit(report.why == Stopped::kInterrupted && report.steps == 3 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(std::filesystem::exists(folder_.File("parts/best.pt")));
  LineTrainee rest(300);
  EXPECT_TRUE(Train(rest, options).resumed);
  EXPECT_TRUE(torch::equal(whole.net_->weight, rest.net_->weight));
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

TEST_F(LoopTest, AValidationCutByCtrlCIsDoneByTheResume) {
  LineTrainee whole(300);
  Train(whole, Options("whole"));
  const RunOptions options = Options("parts");
  EXPECT_EXIT(
      {
        CatchInterrupts();
        LineTrainee part(300);
        part.on_validation = [] { raise(SIGINT); };
        const RunReport report = Train(part, options);
        _exit(report.why == Stopped::kInterrupted && report.steps == 10 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  LineTrainee rest(300);
  Train(rest, options);
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

TEST_F(LoopTest, AShortRunLeavesABestCheckpoint) {
  LineTrainee line(300);
  const RunReport report = Train(line, Options("a", 3));
  EXPECT_EQ(report.last_validation.size(), 1U);
  EXPECT_EQ(ReadCheckpoint(folder_.File("a/best.pt")).step, 3);
  EXPECT_THAT(ReadWhole(folder_.File("a/metrics.jsonl")), ::testing::HasSubstr("\"val\""));
}

TEST_F(LoopTest, WithoutValidationDataThereIsNoBestCheckpoint) {
  LineTrainee line(300);
  line.validates = false;
  ::testing::internal::CaptureStderr();
  Train(line, Options("a", 20));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("no validation data (val is not set)"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("a/best.pt")));
}

TEST(PlannedStepsTest, CountsTheLastStepAlsoWhenItIsShort) {
  const LoopOptions options{.gradient_accumulation_steps = 4, .num_epochs = 3};
  TraineeFacts facts;
  facts.batches_per_epoch = 7;
  EXPECT_EQ(PlannedSteps(facts, options), 6);
  facts.batches_per_epoch = 8;
  EXPECT_EQ(PlannedSteps(facts, options), 6);
}

TEST_F(LoopTest, PassesOverADamagedCheckpoint) {
  LineTrainee whole(300);
  Train(whole, Options("whole"));
  LineTrainee part(300);
  const RunReport report = Train(part, Options("parts", 70));
  const std::vector<std::string> files = io::ListCheckpoints(folder_.File("parts"));
  ASSERT_GE(files.size(), 2U);
  std::filesystem::resize_file(files.back(), std::filesystem::file_size(files.back()) / 2);
  LineTrainee rest(300);
  const RunReport resumed = Train(rest, Options("parts"));
  EXPECT_TRUE(resumed.resumed);
  EXPECT_EQ(testing::ReadWhole(folder_.File("parts/metrics.jsonl")),
            testing::ReadWhole(folder_.File("whole/metrics.jsonl")));
  for (const std::string& file : io::ListCheckpoints(folder_.File("parts"))) {
    std::filesystem::resize_file(file, 100);
  }
  LineTrainee none(300);
  EXPECT_NE(testing::MessageOf([&] { Train(none, Options("parts")); }), "");
}

// A checkpoint of an earlier version: sums of the student's own, no means.
TEST_F(LoopTest, ResumesFromStatesOfEarlierVersions) {
  LineTrainee whole(300);
  Train(whole, Options("whole"));
  LineTrainee part(300);
  Train(part, Options("parts", 70));  // A multiple of log_every_n_steps: no means are open.
  RunFolder folder(folder_.File("parts"), {.keep = 2});
  std::optional<std::string> last;
  Checkpoint checkpoint = folder.ReadNewest(last).value();
  using io::Value;
  checkpoint.student =
      Value::Dict({{Value::String("position"), checkpoint.student.Get("position")},
                   {Value::String("epoch"), checkpoint.student.Get("epoch")},
                   {Value::String("sums"), Value::List({Value::Float(0), Value::Float(0)})}});
  folder.Save(checkpoint, false);
  LineTrainee rest(300);
  Train(rest, Options("parts"));
  EXPECT_TRUE(torch::equal(whole.net_->weight, rest.net_->weight));
  EXPECT_EQ(ReadWhole(folder_.File("whole/metrics.jsonl")),
            ReadWhole(folder_.File("parts/metrics.jsonl")));
}

}  // namespace
}  // namespace kibitz::learn
