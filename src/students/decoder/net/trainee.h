// The decoder as a trainee of the training loop: its network, its stream of batches, its losses.
//
//   learn::RunReport report = TrainDecoder(options, config);
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "learn/loop.h"
#include "students/decoder/data/stream.h"
#include "students/decoder/data/train_options.h"
#include "students/decoder/net/loss.h"

namespace kibitz::decoder {

class DecoderTrainee : public learn::Trainee {
 public:
  // Opens the data and makes the network: from options.pretrain_checkpoint, or new from the seed.
  // Throws Error.
  explicit DecoderTrainee(const TrainOptions& options);

  DecoderNet& net() { return net_; }
  // Samples to learn from; null where the phase has none.
  const Source* games() const { return games_.get(); }
  const Source* searches() const { return searches_.get(); }

  // Steps that all epochs take, about (bad rows are counted in); 0 without a limit of epochs.
  int64_t PlannedSteps() const;

  torch::nn::Module& module() override { return *net_; }
  bool Learn(double scale) override;
  learn::NamedValues TakeMetrics() override;
  learn::NamedValues Validate() override;
  io::Value State() const override;
  void Restore(const io::Value& state) override;
  int64_t epoch() const override { return static_cast<int64_t>(epoch_); }
  uint64_t units_done() const override { return tokens_; }
  std::string unit_name() const override { return "tokens"; }
  std::vector<std::string> headline() const override;

 private:
  LossAndMetrics Teach(const Batch& batch);
  StreamOptions TrainingStream() const;

  TrainOptions options_;
  LossOptions loss_;
  torch::Device device_;
  DecoderNet net_ = nullptr;
  std::unique_ptr<Source> games_;
  std::unique_ptr<Source> searches_;
  std::unique_ptr<Source> val_games_;
  std::unique_ptr<Source> val_searches_;
  std::unique_ptr<BatchStream> stream_;  // Made with the first batch: only then the place is known.
  uint64_t position_ = 0;                // In the stream, behind the last batch learned.
  uint64_t epoch_ = 0;
  uint64_t variation_epoch_ = 0;
  Metrics metrics_;  // Since they were last taken.
  uint64_t tokens_ = 0;
};

// The device a config names; the CPU, with a warning, when the machine has no such one.
torch::Device DeviceOf(const std::string& name);

// A network with the weights of a checkpoint, migrated if needed. Throws Error.
DecoderNet LoadNet(const std::string& path);

}  // namespace kibitz::decoder
