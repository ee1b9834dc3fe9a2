#include "students/policy/net/trainee.h"

#include <utility>

#include "base/error.h"
#include "learn/autocast.h"
#include "learn/ranks.h"
#include "learn/weights.h"
#include "students/policy/net/loss.h"

namespace kibitz::policy {
namespace {

TrainOptions WithVocabulary(TrainOptions options, const Dataset& data) {
  const int moves = data.vocabulary().size();
  if (!options.init.empty() && options.model.num_moves != moves) {
    throw Error("{} has {} moves, the data set has {}; use weights and data of one vocabulary",
                options.init, options.model.num_moves, moves);
  }
  options.model.num_moves = moves;
  return options;
}

}  // namespace

PolicyTrainee::PolicyTrainee(const TrainOptions& options)
    : Trainee(options.training), data_(Dataset::Open(options.data.data_dir)) {
  options_ = WithVocabulary(options, data_);
  samples_ = SelectSamples(data_, options_.data);
  net_ = MakeNet(options_.model);
  net_->recompute_blocks = options_.training.gradient_checkpointing;
  learn::InitWeights(*net_, options_.training.seed);
  if (!options_.init.empty()) LoadWeightsInto(*net_, options_.init);
}

learn::TraineeFacts PolicyTrainee::Facts() const {
  const uint64_t samples = samples_.train.size();
  const auto batch = static_cast<uint64_t>(options_.data.batch_size) *
                     static_cast<uint64_t>(learn::Ranks::Here().size());
  learn::TraineeFacts facts;
  facts.headline = {"total_loss", "move_acc"};
  facts.batches_per_epoch = static_cast<double>((samples + batch - 1) / batch);
  facts.samples = samples;
  if (samples_.eval.size() == 0) facts.no_validation = "the data set has no position held out";
  return facts;
}

StreamOptions PolicyTrainee::TrainingStream() const {
  return {.seed = options_.training.seed,
          .batch_size = options_.data.batch_size,
          .epochs = options_.training.num_epochs,
          .form = options_.model.form(),
          .label = options_.label,
          .threads = options_.data.loader_threads};
}

void PolicyTrainee::StartAt(uint64_t position) {
  stream_.reset();  // Ends the old stream's threads first.
  StreamOptions options = TrainingStream();
  options.mate_weight = options_.data.mate_weight;
  options.rank = learn::Ranks::Here().rank();
  options.ranks = learn::Ranks::Here().size();
  stream_ = std::make_unique<BatchStream>(data_, samples_.train, options, position);
}

PolicyTrainee::Scored PolicyTrainee::Score(Batch&& batch) {
  const auto rows = static_cast<double>(batch.rows);
  const TargetBatch targets = ToTensors(std::move(batch)).To(device());
  const learn::Autocast autocast(device(), options_.training.use_amp);
  const torch::Tensor logits =
      net_->Logits(targets.inputs, device().is_cpu() ? Form::kFast : Form::kPlain);  // (B, M)
  const torch::Tensor loss = SoftLoss(logits, targets);
  const Hits hits = CountHits(logits, targets.best);
  return {loss, rows, rows * loss.item<double>(), hits.first, hits.five};
}

std::optional<learn::BatchResult> PolicyTrainee::Next() {
  std::optional<Batch> batch = stream_->Next();
  if (!batch) return std::nullopt;
  learn::BatchResult result;
  result.epoch = static_cast<int64_t>(batch->epoch);
  result.units = static_cast<uint64_t>(batch->rows);
  result.position = stream_->position();
  const double share = learn::ShareOfRows(batch->rows);
  if (batch->rows == 0) return result;
  const Scored scored = Score(std::move(*batch));
  result.loss = scored.loss * share;
  result.means.Add("total_loss", scored.loss_sum, scored.rows);
  result.means.Add("move_acc", scored.first, scored.rows);
  result.means.Add("top5_acc", scored.five, scored.rows);
  return result;
}

PolicyTrainee::Scored PolicyTrainee::Evaluate(const SampleSet& samples,
                                              const learn::KeepGoing& keep_going) {
  Scored sums;
  if (samples.size() == 0) return sums;
  const torch::NoGradGuard no_grad;
  StreamOptions options = TrainingStream();
  options.seed = 0;  // The same positions each time, whatever the run's seed.
  options.epochs = 1;
  options.batch_size = 1024;
  BatchStream stream(data_, samples, options);
  while (sums.rows < static_cast<double>(options_.data.eval_rows) && keep_going()) {
    std::optional<Batch> batch = stream.Next();
    if (!batch) break;
    const Scored scored = Score(std::move(*batch));
    sums.rows += scored.rows;
    sums.loss_sum += scored.loss_sum;
    sums.first += scored.first;
    sums.five += scored.five;
  }
  return sums;
}

learn::Means PolicyTrainee::Validate(const learn::KeepGoing& keep_going) {
  learn::Means means;
  const Scored all = Evaluate(samples_.eval, keep_going);
  if (all.rows == 0) return means;
  means.Add("total_loss", all.loss_sum, all.rows);
  means.Add("move_acc", all.first, all.rows);
  means.Add("top5_acc", all.five, all.rows);
  const Scored deep = Evaluate(samples_.deep_eval, keep_going);
  means.Add("deep_loss", deep.loss_sum, deep.rows);
  means.Add("deep_acc", deep.first, deep.rows);
  return means;
}

}  // namespace kibitz::policy
