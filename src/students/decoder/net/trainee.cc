#include "students/decoder/net/trainee.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "learn/autocast.h"
#include "learn/ranks.h"
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

learn::Means MeansOf(const Metrics& metrics, Phase phase) {
  learn::Means means;
  for (const auto& [name, mean] : NamedMeans(metrics, phase)) {
    means.Add(name, mean.sum, mean.count);
  }
  return means;
}

// Pretraining does not train the thinking head, so finetuning starts it as a copy of the policy
// head.
void CloneThinkingHead(DecoderNet& net) {
  const torch::NoGradGuard no_grad;
  net->thinking_policy_head->weight.copy_(net->policy_head->weight);
  net->thinking_policy_head->bias.copy_(net->policy_head->bias);
}

// The file's weights, with zeros for the parts that it lacks and the network has.
io::StateDict WithNewParts(DecoderNet& net, const WeightsFile& file) {
  const torch::NoGradGuard no_grad;
  std::vector<io::NamedTensor> tensors = file.weights.tensors();
  const std::vector<io::NamedTensor> all = learn::WeightsOf(*net);
  auto parameters = net->named_parameters();
  for (const NetPart& part : NetParts()) {
    if (file.config.*part.flag || !(net->config.*part.flag)) continue;
    for (const io::NamedTensor& own : all) {
      const auto begins = [&](std::string_view prefix) { return own.name.starts_with(prefix); };
      if (!std::ranges::any_of(part.tensors, begins)) continue;
      parameters[own.name].zero_();
      tensors.push_back(own);
    }
  }
  return {std::move(tensors), file.weights.place()};
}

}  // namespace

DecoderTrainee::DecoderTrainee(const TrainOptions& options)
    : Trainee(options.training), options_(options) {
  CheckOptions(options);
  if (options.training.gradient_checkpointing && !device().is_cpu()) {
    throw Error::Usage(
        "training.gradient_checkpointing of a decoder works on the CPU only, and training.device "
        "is '{}'; lower data.batch_size and raise training.gradient_accumulation_steps instead",
        options.training.device);
  }
  loss_.phase = options.phase;
  loss_.weights = options.loss;
  loss_.recompute_layers = options.training.gradient_checkpointing;
  net_ = DecoderNet(options.model);
  if (options.pretrain_checkpoint.empty()) {
    InitNet(net_, options.training.seed);
    const torch::NoGradGuard no_grad;
    net_->tok_embedding->weight.mul_(options.embedding_std);
    if (options.model.board_places) net_->place_embedding->weight.mul_(options.embedding_std);
    if (options.model.square_sight) net_->sight_embedding->weight.mul_(options.embedding_std);
    if (options.model.square_attacks) net_->attack_embedding->weight.mul_(options.embedding_std);
  } else {
    const std::string& path = options.pretrain_checkpoint;
    const WeightsFile file = ReadWeightsFile(path, options.model.num_heads);
    learn::LoadWeights(*net_, WithNewParts(net_, file), path);
    if (options.phase == Phase::kFinetune && file.pretrained) {
      CloneThinkingHead(net_);
      LogInfo("{}: pretrained; thinking_policy_head starts as a copy of policy_head", path);
    }
  }
  OpenData();
}

void DecoderTrainee::OpenData() {
  const DataOptions& data = options_.data;
  if (options_.phase == Phase::kPretrain) {
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

learn::TraineeFacts DecoderTrainee::Facts() const {
  const bool pretrain = options_.phase == Phase::kPretrain;
  learn::TraineeFacts facts;
  facts.unit = "tokens";
  facts.headline = pretrain ? std::vector<std::string>{"total_loss", "move_acc", "board_acc"}
                            : std::vector<std::string>{"total_loss", "final_move_acc",
                                                       "thinking_move_acc", "board_acc"};
  facts.batches_per_epoch = BatchesPerEpoch();
  if (!val_games_ && !val_searches_) {
    facts.no_validation =
        pretrain ? "data.val_parquet_dir is not set" : "data.val_variation_parquet_dir is not set";
  }
  return facts;
}

// About: rows that turn out bad are counted in.
double DecoderTrainee::BatchesPerEpoch() const {
  const double ratio = options_.data.stream.variation_ratio;
  // The source that lasts longer makes the epoch.
  double samples = 0;
  if (games_) samples = static_cast<double>(games_->size()) / (1 - ratio);
  if (searches_) samples = std::max(samples, static_cast<double>(searches_->size()) / ratio);
  return samples / options_.data.stream.batch_size / learn::Ranks::Here().size();
}

void DecoderTrainee::StartAt(uint64_t position) {
  StreamOptions options = options_.data.stream;
  options.seed = options_.training.seed;
  options.epochs = options_.training.num_epochs;
  options.rank = learn::Ranks::Here().rank();
  options.ranks = learn::Ranks::Here().size();
  stream_.reset();  // Ends the old stream's threads first.
  stream_ = std::make_unique<BatchStream>(games_.get(), searches_.get(), options, position);
}

LossAndMetrics DecoderTrainee::Loss(const Batch& batch, const LossOptions& options) {
  const learn::Autocast autocast(device(), options_.training.use_amp);
  if (device().is_cpu()) return PackedLoss(net_, batch, options);
  return PlainLoss(net_, batch, options, options_.data.max_seq_len);
}

std::optional<learn::BatchResult> DecoderTrainee::Next() {
  const std::optional<StreamBatch> next = stream_->Next();
  if (!next) return std::nullopt;
  learn::BatchResult result{.loss = {},
                            .means = {},
                            .units = static_cast<uint64_t>(next->batch.tokens()),
                            .position = next->position,
                            .epoch = static_cast<int64_t>(next->epoch)};
  LossOptions loss = loss_;
  learn::Ranks& ranks = learn::Ranks::Here();
  if (ranks.size() > 1) {
    loss.targets = CountTargets(next->batch);
    ranks.Sum(loss.targets);
  }
  if (next->batch.sequences() > 0) {
    LossAndMetrics found = Loss(next->batch, loss);
    // Each rank has a part of what is counted once for a batch.
    Metrics& metrics = found.metrics;
    for (Mean* mean : {&metrics.total_loss, &metrics.batch_thinking_samples,
                       &metrics.batch_normal_samples, &metrics.n_reordered_samples}) {
      mean->count /= ranks.size();
    }
    result.loss = found.loss;
    result.means = MeansOf(found.metrics, options_.phase);
  }
  if (searches_) {
    result.latest = {{"variation_epoch", static_cast<double>(next->batch.variation_epoch)}};
  }
  return result;
}

learn::Means DecoderTrainee::Validate(const learn::KeepGoing& keep_going) {
  if (!val_games_ && !val_searches_) return {};
  StreamOptions options = options_.data.stream;
  options.seed = 0;                                   // The same samples each time.
  options.batch_size *= learn::Ranks::Here().size();  // Every rank validates on all of them.
  options.epochs = 1;
  if (!val_games_) options.variation_ratio = 1;
  if (!val_searches_) options.variation_ratio = 0;
  BatchStream stream(val_games_.get(), val_searches_.get(), options);
  const torch::NoGradGuard no_grad;
  Metrics metrics;
  for (int i = 0; i < options_.data.val_batches && keep_going(); ++i) {
    const std::optional<StreamBatch> next = stream.Next();
    if (!next) break;
    metrics += Loss(next->batch).metrics;
  }
  return MeansOf(metrics, options_.phase);
}

}  // namespace kibitz::decoder
