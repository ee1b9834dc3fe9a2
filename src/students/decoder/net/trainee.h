// The decoder as a trainee of the training loop: its network, its batches, its losses.
//
//   DecoderTrainee trainee(options);
//   learn::RunReport report = learn::Train(trainee, {.loop = options.training});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "learn/loop.h"
#include "learn/runtime.h"
#include "students/decoder/data/stream.h"
#include "students/decoder/data/train_options.h"
#include "students/decoder/net/loss.h"

namespace kibitz::decoder {

class DecoderTrainee : public learn::Trainee {
 public:
  // Opens the data and makes the network: from options.pretrain_checkpoint, or new from the seed.
  // `options` are Completed(). Throws Error.
  explicit DecoderTrainee(const TrainOptions& options);

  DecoderNet& net() { return net_; }
  // Training data; null where the phase has none.
  const Source* games() const { return games_.get(); }
  const Source* searches() const { return searches_.get(); }

  torch::nn::Module& module() override { return *net_; }
  learn::TraineeFacts Facts() const override;
  void StartAt(uint64_t position) override;
  std::optional<learn::BatchResult> Next() override;
  learn::Means Validate(const learn::KeepGoing& keep_going) override;

 private:
  void OpenData();
  LossAndMetrics Loss(const Batch& batch) { return Loss(batch, loss_); }
  LossAndMetrics Loss(const Batch& batch, const LossOptions& options);
  double BatchesPerEpoch() const;

  // Large products are our own. After a small one, OpenBLAS's threads would spin for milliseconds
  // and take the cores from ours.
  const learn::OneThreadPerProduct one_thread_;
  TrainOptions options_;
  LossOptions loss_;
  DecoderNet net_ = nullptr;
  std::unique_ptr<Source> games_;
  std::unique_ptr<Source> searches_;
  std::unique_ptr<Source> val_games_;
  std::unique_ptr<Source> val_searches_;
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace kibitz::decoder
