#include "learn/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

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
  explicit LineTrainee(uint64_t samples) : samples_(samples) { InitWeights(*net_, 3); }

  torch::nn::Module& module() override { return *net_; }
  bool Learn(double scale) override {
    if (next_ == samples_) return false;
    const float x = static_cast<float>(next_ % 17) / 17;
    const torch::Tensor in =
        torch::full({1, 1}, next_ == nan_at ? std::numeric_limits<float>::quiet_NaN() : x);
    const torch::Tensor loss = (net_->forward(in) - (3 * x - 1)).square().sum();
    (loss * scale).backward();
    sum_ += loss.item<double>();
    ++count_;
    ++next_;
    return true;
  }
  NamedValues TakeMetrics() override {
    NamedValues values = {{"total_loss", sum_ / count_}};
    sum_ = count_ = 0;
    return values;
  }
  NamedValues Validate() override {
    const torch::NoGradGuard no_grad;
    return {{"total_loss", (net_->forward(torch::ones({1, 1})) - 2).square().item<double>()}};
  }
  io::Value State() const override {
    return io::Value::List({io::Value::Int(static_cast<int64_t>(next_)), io::Value::Float(sum_),
                            io::Value::Float(count_)});
  }
  void Restore(const io::Value& state) override {
    next_ = static_cast<uint64_t>(state.items()[0].AsInt());
    sum_ = state.items()[1].AsDouble();
    count_ = state.items()[2].AsDouble();
  }
  int64_t epoch() const override { return static_cast<int64_t>(next_ / 100); }
  uint64_t units_done() const override { return next_; }
  std::string unit_name() const override { return "points"; }
  std::vector<std::string> headline() const override { return {"total_loss"}; }

  uint64_t nan_at = ~uint64_t{0};
  torch::nn::Linear net_ = torch::nn::Linear(1, 1);

 private:
  uint64_t samples_;
  uint64_t next_ = 0;
  double sum_ = 0;
  double count_ = 0;
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

// Stopped at odd places and gone on with: the same weights, the same metrics, byte for byte.
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

TEST_F(LoopTest, AGradientThatIsNoNumberIsSkipped) {
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

}  // namespace
}  // namespace kibitz::learn
