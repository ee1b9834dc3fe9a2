// The 2048 student as a trainee of the training loop: its network, its batches, its loss.
//
//   Twenty48Trainee trainee(options);
//   learn::RunReport report = learn::Train(trainee, {.loop = options.training});
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "learn/loop.h"
#include "students/twenty48/data/train_options.h"
#include "students/twenty48/net/attention_free.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"
#include "students/twenty48/net/tuple_net.h"

namespace kibitz::twenty48 {

class Twenty48Trainee : public learn::Trainee {
 public:
  // Opens the pack and makes the network: from options.init, or new from the seed. `options` are
  // Completed(). Throws Error.
  explicit Twenty48Trainee(const TrainOptions& options);

  const RowSet& rows() const { return rows_; }

  torch::nn::Module& module() override;
  learn::TraineeFacts Facts() const override;
  void StartAt(uint64_t position) override;
  std::optional<learn::BatchResult> Next() override;
  learn::Means Validate(const learn::KeepGoing& keep_going) override;

 private:
  void InitNet();
  torch::Tensor Logits(const torch::Tensor& tokens);
  // The loss; its metrics are added to `means`. `all`: TargetRows::all.
  torch::Tensor Score(const Batch& batch, learn::Means& means,
                      const std::optional<RowCounts>& all = {});

  TrainOptions options_;
  Binner binner_;
  Pack pack_;
  RowSet rows_;
  // One of these: by model.tuple_width, then by `attention`.
  TupleNet tuple_net_ = nullptr;
  Encoder net_ = nullptr;
  AttentionFree attention_free_ = nullptr;
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace kibitz::twenty48
