#include "students/twenty48/net/trainee.h"

#include "io/weights/state_dict.h"
#include "learn/weights.h"

namespace kibitz::twenty48 {

using torch::Tensor;

Twenty48Trainee::Twenty48Trainee(const TrainOptions& options)
    : options_(Completed(options)),
      binner_(options_.binning),
      pack_(Pack::Open(options_.dataset.dataset_dir)),
      rows_(SelectRows(pack_, options_.dataset)),
      net_(options_.model) {
  InitEncoder(net_, options_.training.seed);
  if (options_.attention) {
    if (!options_.init.empty()) LoadWeightsInto(net_, options_.init);
    return;
  }
  attention_free_ = AttentionFree(options_.model);
  InitAttentionFree(attention_free_, options_.training.seed);
  if (options_.init.empty()) return;
  const io::StateDict weights = io::StateDict::Read(options_.init);
  learn::LoadWeights(*attention_free_, weights, weights.place());
}

torch::nn::Module& Twenty48Trainee::module() {
  if (!options_.attention) return *attention_free_;
  return *net_;
}

int64_t Twenty48Trainee::PlannedSteps() const {
  const int64_t batch = options_.dataset.batch_size;
  const int64_t batches = (static_cast<int64_t>(rows_.train.size()) + batch - 1) / batch;
  return batches * options_.training.num_epochs / options_.training.gradient_accumulation_steps;
}

StreamOptions Twenty48Trainee::TrainingStream() const {
  return {.seed = options_.training.seed,
          .batch_size = options_.dataset.batch_size,
          .epochs = options_.training.num_epochs,
          .rotate = options_.dataset.rotate,
          .flip = options_.dataset.flip,
          .canonical = options_.model.canonical_view};
}

Tensor Twenty48Trainee::Teach(const Batch& batch, Sums& sums) {
  const TargetRows rows = ToTensors(batch, options_.target, binner_);
  const Tensor logits =
      options_.attention ? net_->forward(rows.tokens) : attention_free_->forward(rows.tokens);
  const Losses losses = LossOf(logits, rows, options_.target);
  const auto count = static_cast<double>(batch.rows());
  sums.rows += count;
  sums.total_loss += count * losses.total.item<double>();
  if (losses.kd.defined()) sums.kd_loss += count * losses.kd.item<double>();
  if (losses.aux.defined()) sums.aux_loss += count * losses.aux.item<double>();
  sums.right += Played(logits, rows.legal).eq(rows.moves).sum().item<double>();
  return losses.total;
}

bool Twenty48Trainee::Learn(double scale) {
  if (!stream_) {
    stream_ = std::make_unique<BatchStream>(pack_, rows_.train, TrainingStream(), position_);
  }
  const std::optional<Batch> batch = stream_->Next();
  if (!batch) return false;
  (Teach(*batch, sums_) * scale).backward();
  position_ = stream_->position();
  epoch_ = batch->epoch;
  samples_ += static_cast<uint64_t>(batch->rows());
  return true;
}

learn::NamedValues Twenty48Trainee::Means(const Sums& sums) const {
  if (sums.rows == 0) return {};
  learn::NamedValues values = {{"total_loss", sums.total_loss / sums.rows}};
  if (options_.target.mode == TargetMode::kTsadSoft) {
    values.emplace_back("kd_loss", sums.kd_loss / sums.rows);
    values.emplace_back("aux_ce_loss", sums.aux_loss / sums.rows);
  }
  values.emplace_back("move_acc", sums.right / sums.rows);
  return values;
}

learn::NamedValues Twenty48Trainee::TakeMetrics() {
  const learn::NamedValues values = Means(sums_);
  sums_ = {};
  return values;
}

learn::NamedValues Twenty48Trainee::Validate() {
  if (rows_.validation.empty()) return {};
  const torch::NoGradGuard no_grad;
  // Drawn once for all: the same rows each time, from all games.
  BatchStream stream(pack_, rows_.validation,
                     {.seed = 0, .batch_size = 1024, .canonical = options_.model.canonical_view});
  Sums sums;
  while (sums.rows < static_cast<double>(options_.dataset.val_rows)) {
    const std::optional<Batch> batch = stream.Next();
    if (!batch) break;
    Teach(*batch, sums);
  }
  return Means(sums);
}

io::Value Twenty48Trainee::State() const {
  using io::Value;
  Value::Items sums;
  for (double number : {sums_.rows, sums_.total_loss, sums_.kd_loss, sums_.aux_loss, sums_.right}) {
    sums.push_back(Value::Float(number));
  }
  return Value::Dict({{Value::String("position"), Value::Int(static_cast<int64_t>(position_))},
                      {Value::String("epoch"), Value::Int(static_cast<int64_t>(epoch_))},
                      {Value::String("sums"), Value::List(std::move(sums))}});
}

void Twenty48Trainee::Restore(const io::Value& state) {
  position_ = static_cast<uint64_t>(state.Get("position").AsInt());
  epoch_ = static_cast<uint64_t>(state.Get("epoch").AsInt());
  std::vector<double> sums;
  for (const io::Value& number : state.Get("sums").items()) sums.push_back(number.AsDouble());
  CHECK(sums.size() == 5);
  sums_ = {sums[0], sums[1], sums[2], sums[3], sums[4]};
  stream_.reset();
}

}  // namespace kibitz::twenty48
