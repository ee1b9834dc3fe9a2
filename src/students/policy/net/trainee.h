// The policy as a trainee of the training loop: its network, its batches, its loss.
//
//   PolicyTrainee trainee(options);
//   learn::RunReport report = learn::Train(trainee, {.loop = options.training});
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "learn/loop.h"
#include "students/policy/data/train_options.h"
#include "students/policy/net/policy_net.h"

namespace kibitz::policy {

class PolicyTrainee : public learn::Trainee {
 public:
  // Opens the data and makes the network: from options.init, or new from the seed. `options` are
  // Completed(). Throws Error.
  explicit PolicyTrainee(const TrainOptions& options);

  NetModule& net() { return *net_; }
  // With the size of the data's move vocabulary.
  const TrainOptions& options() const { return options_; }
  const SampleSets& samples() const { return samples_; }

  torch::nn::Module& module() override { return *net_; }
  learn::TraineeFacts Facts() const override;
  void StartAt(uint64_t position) override;
  std::optional<learn::BatchResult> Next() override;
  learn::Means Validate(const learn::KeepGoing& keep_going) override;

 private:
  struct Scored {
    torch::Tensor loss;
    double rows = 0;
    double loss_sum = 0;
    double first = 0;  // Positions whose best move the network puts first ...
    double five = 0;   // ... and among the first five.
  };

  StreamOptions TrainingStream() const;
  Scored Score(Batch&& batch);
  // Sums over at most data.eval_rows positions.
  Scored Evaluate(const SampleSet& samples, const learn::KeepGoing& keep_going);

  TrainOptions options_;
  Dataset data_;
  SampleSets samples_;
  PolicyNet net_;
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace kibitz::policy
