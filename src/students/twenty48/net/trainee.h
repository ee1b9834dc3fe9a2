// The 2048 student as a trainee of the training loop: its network, its batches, its loss.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learn/loop.h"
#include "students/twenty48/data/train_options.h"
#include "students/twenty48/net/attention_free.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"

namespace kibitz::twenty48 {

class Twenty48Trainee : public learn::Trainee {
 public:
  // Opens the pack and makes the network: from options.init, or new from the seed. Throws Error.
  explicit Twenty48Trainee(const TrainOptions& options);

  Encoder& net() { return net_; }
  const RowSet& rows() const { return rows_; }
  // Steps that all epochs take; 0 without a limit of epochs.
  int64_t PlannedSteps() const;

  torch::nn::Module& module() override;
  bool Learn(double scale) override;
  learn::NamedValues TakeMetrics() override;
  learn::NamedValues Validate() override;
  io::Value State() const override;
  void Restore(const io::Value& state) override;
  int64_t epoch() const override { return static_cast<int64_t>(epoch_); }
  uint64_t units_done() const override { return samples_; }
  std::string unit_name() const override { return "samples"; }
  std::vector<std::string> headline() const override { return {"total_loss", "move_acc"}; }

 private:
  // Sums over rows, so that means of any number of batches can be told.
  struct Sums {
    double rows = 0;
    double total_loss = 0;
    double kd_loss = 0;
    double aux_loss = 0;
    double right = 0;  // Rows where the move played is the one made.
  };

  torch::Tensor Teach(const Batch& batch, Sums& sums);  // The loss.
  StreamOptions TrainingStream() const;
  learn::NamedValues Means(const Sums& sums) const;

  TrainOptions options_;
  Binner binner_;
  Pack pack_;
  RowSet rows_;
  Encoder net_ = nullptr;
  AttentionFree attention_free_ = nullptr;  // Trained instead with `attention = "off"`.
  std::unique_ptr<BatchStream> stream_;  // Made with the first batch: only then the place is known.
  uint64_t position_ = 0;
  uint64_t epoch_ = 0;
  uint64_t samples_ = 0;
  Sums sums_;
};

}  // namespace kibitz::twenty48
