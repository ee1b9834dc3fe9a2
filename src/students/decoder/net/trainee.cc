#include "students/decoder/net/trainee.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "learn/autocast.h"
#include "learn/weights.h"
#include "students/decoder/data/weights_file.h"

namespace kibitz::decoder {
namespace {

std::unique_ptr<Source> Open(const std::string& path, const GameOptions& options) {
  return path.empty() ? nullptr : OpenGames({path}, options);
}
std::unique_ptr<Source> Open(const std::string& path, const ThinkingOptions& options) {
  return path.empty() ? nullptr : OpenSearches({path}, options);
}

}  // namespace

torch::Device DeviceOf(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  if (name != "cuda" && !name.starts_with("cuda:")) {
    throw Error::Usage("device '{}' is not known; it may be cpu, cuda or cuda:N", name);
  }
  if (torch::cuda::is_available()) return torch::Device(name);
  LogWarn("there is no {} here; training on the CPU", name);
  return torch::kCPU;
}

DecoderNet LoadNet(const std::string& path) {
  const WeightsFile file = ReadWeightsFile(path);
  DecoderNet net(file.config);
  learn::LoadWeights(*net, file.weights, path);
  return net;
}

DecoderTrainee::DecoderTrainee(const TrainOptions& options)
    : options_(options), device_(DeviceOf(options.training.device)) {
  CheckOptions(options);
  loss_.phase = options.phase;
  loss_.weights = options.loss;
  loss_.recompute_layers = options.training.gradient_checkpointing;
  net_ = DecoderNet(options.model);
  if (options.pretrain_checkpoint.empty()) {
    InitNet(net_, options.training.seed);
  } else {
    const std::string& path = options.pretrain_checkpoint;
    learn::LoadWeights(*net_, ReadWeightsFile(path, options.model.num_heads).weights, path);
  }
  net_->to(device_);
  if (options.training.use_amp && device_.is_cpu()) {
    LogInfo("use_amp: the CPU computes in single precision");
  }
  const DataOptions& data = options.data;
  if (options.phase == Phase::kPretrain) {
    games_ = Open(data.parquet_dir, data.Games());
  } else {
    if (data.stream.variation_ratio < 1) games_ = Open(data.pretrain_parquet_dir, data.Games());
    if (data.stream.variation_ratio > 0) {
      searches_ = Open(data.variation_parquet_dir, data.Thinking());
    }
    val_searches_ = Open(data.val_variation_parquet_dir, data.Thinking());
  }
  val_games_ = Open(data.val_parquet_dir, data.Games());
}

int64_t DecoderTrainee::PlannedSteps() const {
  const double ratio = options_.data.stream.variation_ratio;
  // The source that lasts longer makes the epoch.
  double samples = 0;
  if (games_) samples = static_cast<double>(games_->size()) / (1 - ratio);
  if (searches_) samples = std::max(samples, static_cast<double>(searches_->size()) / ratio);
  const auto in_step = static_cast<double>(options_.training.gradient_accumulation_steps) *
                       options_.data.stream.batch_size;
  return static_cast<int64_t>(
      std::ceil(samples * static_cast<double>(options_.training.num_epochs) / in_step));
}

StreamOptions DecoderTrainee::TrainingStream() const {
  StreamOptions stream_options = options_.data.stream;
  stream_options.seed = options_.training.seed;
  stream_options.epochs = options_.training.num_epochs;
  return stream_options;
}

LossAndMetrics DecoderTrainee::Teach(const Batch& batch) {
  if (device_.is_cpu()) return PackedLoss(net_, batch, loss_);
  const learn::Autocast autocast(device_, options_.training.use_amp);
  return PlainLoss(net_, batch, loss_, options_.data.max_seq_len);
}

bool DecoderTrainee::Learn(double scale) {
  if (!stream_) {
    stream_ =
        std::make_unique<BatchStream>(games_.get(), searches_.get(), TrainingStream(), position_);
  }
  const std::optional<StreamBatch> next = stream_->Next();
  if (!next) return false;
  const LossAndMetrics taught = Teach(next->batch);
  (taught.loss * scale).backward();
  metrics_ += taught.metrics;
  tokens_ += static_cast<uint64_t>(next->batch.tokens());
  position_ = next->position;
  epoch_ = next->epoch;
  variation_epoch_ = next->batch.variation_epoch;
  return true;
}

learn::NamedValues DecoderTrainee::TakeMetrics() {
  learn::NamedValues values = decoder::NamedValues(metrics_, options_.phase);
  if (searches_) values.emplace_back("variation_epoch", static_cast<double>(variation_epoch_));
  metrics_ = {};
  return values;
}

learn::NamedValues DecoderTrainee::Validate() {
  if (!val_games_ && !val_searches_) return {};
  StreamOptions stream_options = options_.data.stream;
  stream_options.seed = 0;  // The same samples each time.
  stream_options.epochs = 1;
  if (!val_games_) stream_options.variation_ratio = 1;
  if (!val_searches_) stream_options.variation_ratio = 0;
  BatchStream stream(val_games_.get(), val_searches_.get(), stream_options);
  const torch::NoGradGuard no_grad;
  Metrics metrics;
  for (int i = 0; i < options_.data.val_batches; ++i) {
    const std::optional<StreamBatch> next = stream.Next();
    if (!next) break;
    metrics += Teach(next->batch).metrics;
  }
  return decoder::NamedValues(metrics, options_.phase);
}

io::Value DecoderTrainee::State() const {
  using io::Value;
  Value::Items sums;
  for (double number : Flatten(metrics_)) sums.push_back(Value::Float(number));
  return Value::Dict(
      {{Value::String("position"), Value::Int(static_cast<int64_t>(position_))},
       {Value::String("epoch"), Value::Int(static_cast<int64_t>(epoch_))},
       {Value::String("variation_epoch"), Value::Int(static_cast<int64_t>(variation_epoch_))},
       {Value::String("metrics"), Value::List(std::move(sums))}});
}

void DecoderTrainee::Restore(const io::Value& state) {
  position_ = static_cast<uint64_t>(state.Get("position").AsInt());
  epoch_ = static_cast<uint64_t>(state.Get("epoch").AsInt());
  variation_epoch_ = static_cast<uint64_t>(state.Get("variation_epoch").AsInt());
  std::vector<double> sums;
  for (const io::Value& number : state.Get("metrics").items()) sums.push_back(number.AsDouble());
  metrics_ = Unflatten(sums);
  stream_.reset();
}

std::vector<std::string> DecoderTrainee::headline() const {
  if (options_.phase == Phase::kPretrain) return {"total_loss", "move_acc", "board_acc"};
  return {"total_loss", "final_move_acc", "thinking_move_acc", "board_acc"};
}

}  // namespace kibitz::decoder
