#include "students/policy/net/trainee.h"

#include "base/error.h"
#include "learn/weights.h"
#include "students/policy/net/loss.h"

namespace kibitz::policy {

using torch::Tensor;

namespace {

TrainOptions WithVocabulary(TrainOptions options, const Dataset& data) {
  const int moves = data.vocabulary().size();
  if (!options.init.empty() && options.model.num_moves != moves) {
    throw Error("{} chooses from {} moves, the data set has {}; they do not belong together",
                options.init, options.model.num_moves, moves);
  }
  options.model.num_moves = moves;
  return options;
}

}  // namespace

PolicyTrainee::PolicyTrainee(const TrainOptions& options)
    : options_(Completed(options)), data_(Dataset::Open(options_.data.data_dir)) {
  options_ = WithVocabulary(options_, data_);
  samples_ = SelectSamples(data_, options_.data);
  net_ = MakeNet(options_.model);
  learn::InitWeights(*net_, options_.training.seed);
  if (!options_.init.empty()) LoadWeightsInto(*net_, options_.init);
}

int64_t PolicyTrainee::PlannedSteps() const {
  const int64_t batch = options_.data.batch_size;
  const int64_t batches = (static_cast<int64_t>(samples_.train.size()) + batch - 1) / batch;
  return batches * options_.training.num_epochs / options_.training.gradient_accumulation_steps;
}

StreamOptions PolicyTrainee::TrainingStream() const {
  return {.seed = options_.training.seed,
          .batch_size = options_.data.batch_size,
          .epochs = options_.training.num_epochs,
          .form = {.flat = !options_.model.IsCnn(), .flip = options_.model.flip_board},
          .label = options_.label,
          .threads = options_.data.loader_threads};
}

Tensor PolicyTrainee::Teach(Batch&& batch, Sums& sums) {
  const auto rows = static_cast<double>(batch.rows);
  const TargetBatch taught = ToTensors(std::move(batch));
  const Tensor logits = net_->Logits(taught.inputs);
  const Tensor loss = SoftLoss(logits, taught);
  const Hits hits = CountHits(logits, taught.best);
  sums.rows += rows;
  sums.loss += rows * loss.item<double>();
  sums.first += hits.first;
  sums.five += hits.five;
  return loss;
}

bool PolicyTrainee::Learn(double scale) {
  if (!stream_) {
    stream_ = std::make_unique<BatchStream>(data_, samples_.train, TrainingStream(), position_);
  }
  std::optional<Batch> batch = stream_->Next();
  if (!batch) return false;
  epoch_ = batch->epoch;
  samples_done_ += static_cast<uint64_t>(batch->rows);
  (Teach(std::move(*batch), sums_) * scale).backward();
  position_ = stream_->position();
  return true;
}

learn::NamedValues PolicyTrainee::TakeMetrics() {
  if (sums_.rows == 0) return {};
  const learn::NamedValues values = {{"total_loss", sums_.loss / sums_.rows},
                                     {"move_acc", sums_.first / sums_.rows},
                                     {"top5_acc", sums_.five / sums_.rows}};
  sums_ = {};
  return values;
}

PolicyTrainee::Sums PolicyTrainee::Evaluate(const SampleSet& samples) {
  Sums sums;
  if (samples.size() == 0) return sums;
  const torch::NoGradGuard no_grad;
  StreamOptions options = TrainingStream();
  options.seed = 0;  // The same positions each time, whatever the run's seed.
  options.epochs = 1;
  options.batch_size = 1024;
  BatchStream stream(data_, samples, options);
  while (sums.rows < static_cast<double>(options_.data.eval_rows)) {
    std::optional<Batch> batch = stream.Next();
    if (!batch) break;
    Teach(std::move(*batch), sums);
  }
  return sums;
}

learn::NamedValues PolicyTrainee::Validate() {
  const Sums all = Evaluate(samples_.eval);
  if (all.rows == 0) return {};
  learn::NamedValues values = {{"total_loss", all.loss / all.rows},
                               {"move_acc", all.first / all.rows},
                               {"top5_acc", all.five / all.rows}};
  const Sums deep = Evaluate(samples_.deep_eval);
  if (deep.rows > 0) {
    values.emplace_back("deep_loss", deep.loss / deep.rows);
    values.emplace_back("deep_acc", deep.first / deep.rows);
  }
  return values;
}

io::Value PolicyTrainee::State() const {
  using io::Value;
  Value::Items sums;
  for (double number : {sums_.rows, sums_.loss, sums_.first, sums_.five}) {
    sums.push_back(Value::Float(number));
  }
  return Value::Dict(
      {{Value::String("position"), Value::Int(static_cast<int64_t>(position_))},
       {Value::String("epoch"), Value::Int(static_cast<int64_t>(epoch_))},
       {Value::String("samples"), Value::Int(static_cast<int64_t>(samples_.train.size()))},
       {Value::String("sums"), Value::List(std::move(sums))}});
}

void PolicyTrainee::Restore(const io::Value& state) {
  const int64_t samples = state.Get("samples").AsInt();
  if (static_cast<uint64_t>(samples) != samples_.train.size()) {
    throw Error(
        "the run learned from {} positions, now there are {}: other data or another min_depth;"
        " start a new run, or this one anew with --fresh",
        samples, samples_.train.size());
  }
  position_ = static_cast<uint64_t>(state.Get("position").AsInt());
  epoch_ = static_cast<uint64_t>(state.Get("epoch").AsInt());
  std::vector<double> sums;
  for (const io::Value& number : state.Get("sums").items()) sums.push_back(number.AsDouble());
  CHECK(sums.size() == 4);
  sums_ = {sums[0], sums[1], sums[2], sums[3]};
  stream_.reset();
}

}  // namespace kibitz::policy
