// The policy as a trainee of the training loop: its network, its batches, its loss.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learn/loop.h"
#include "students/policy/data/train_options.h"
#include "students/policy/net/policy_net.h"

namespace kibitz::policy {

class PolicyTrainee : public learn::Trainee {
 public:
  // Opens the data and makes the network: from options.init, or new from the seed. Throws Error.
  explicit PolicyTrainee(const TrainOptions& options);

  NetModule& net() { return *net_; }
  // With the size of the vocabulary, which the data gives.
  const TrainOptions& options() const { return options_; }
  const SampleSets& samples() const { return samples_; }
  // Steps that all epochs take; 0 without a limit of epochs.
  int64_t PlannedSteps() const;

  torch::nn::Module& module() override { return *net_; }
  bool Learn(double scale) override;
  learn::NamedValues TakeMetrics() override;
  learn::NamedValues Validate() override;
  io::Value State() const override;
  void Restore(const io::Value& state) override;
  int64_t epoch() const override { return static_cast<int64_t>(epoch_); }
  uint64_t units_done() const override { return samples_done_; }
  std::string unit_name() const override { return "samples"; }
  std::vector<std::string> headline() const override { return {"total_loss", "move_acc"}; }

 private:
  // Sums over positions, so that means of any number of batches can be told.
  struct Sums {
    double rows = 0;
    double loss = 0;
    double first = 0;  // Positions where the label's best move came first ...
    double five = 0;   // ... and among the first five.
  };

  torch::Tensor Teach(Batch&& batch, Sums& sums);  // The loss.
  StreamOptions TrainingStream() const;
  Sums Evaluate(const SampleSet& samples);

  TrainOptions options_;
  Dataset data_;
  SampleSets samples_;
  PolicyNet net_;
  std::unique_ptr<BatchStream> stream_;  // Made with the first batch: only then the place is known.
  uint64_t position_ = 0;
  uint64_t epoch_ = 0;
  uint64_t samples_done_ = 0;
  Sums sums_;
};

}  // namespace kibitz::policy
