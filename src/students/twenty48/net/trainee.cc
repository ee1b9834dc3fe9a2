#include "students/twenty48/net/trainee.h"

#include <algorithm>
#include <array>

#include "io/weights/model_file.h"
#include "learn/autocast.h"
#include "learn/ranks.h"
#include "learn/weights.h"

namespace kibitz::twenty48 {

using torch::Tensor;

Twenty48Trainee::Twenty48Trainee(const TrainOptions& options)
    : Trainee(options.training),
      options_(options),
      binner_(options_.binning),
      pack_(Pack::Open(options_.dataset.dataset_dir)),
      rows_(SelectRows(pack_, options_.dataset)) {
  InitNet();
}

void Twenty48Trainee::InitNet() {
  const uint64_t seed = options_.training.seed;
  if (options_.model.tuple_width > 0) {
    tuple_net_ = TupleNet(options_.model, options_.attention);
    InitTupleNet(tuple_net_, seed);
    if (!options_.init.empty()) LoadWeightsInto(tuple_net_, options_.init);
    return;
  }
  if (options_.attention) {
    net_ = Encoder(options_.model);
    net_->recompute_blocks = options_.training.gradient_checkpointing;
    InitEncoder(net_, seed);
    if (!options_.init.empty()) LoadWeightsInto(net_, options_.init);
    return;
  }
  attention_free_ = AttentionFree(options_.model);
  InitAttentionFree(attention_free_, seed);
  if (options_.init.empty()) return;
  const io::StateDict weights = io::ReadModel(options_.init).weights;
  learn::LoadWeights(*attention_free_, weights, weights.place());
}

torch::nn::Module& Twenty48Trainee::module() {
  if (tuple_net_) return *tuple_net_;
  if (!options_.attention) return *attention_free_;
  return *net_;
}

learn::TraineeFacts Twenty48Trainee::Facts() const {
  const uint64_t samples = rows_.train.size();
  const auto batch = static_cast<uint64_t>(options_.dataset.batch_size) *
                     static_cast<uint64_t>(learn::Ranks::Here().size());
  learn::TraineeFacts facts;
  facts.headline = {"total_loss", "move_acc"};
  facts.batches_per_epoch = static_cast<double>((samples + batch - 1) / batch);
  facts.samples = samples;
  if (rows_.validation.empty()) {
    facts.no_validation = "dataset.val_run_sql and dataset.val_run_pct hold out no game";
  }
  return facts;
}

void Twenty48Trainee::StartAt(uint64_t position) {
  const learn::Ranks& ranks = learn::Ranks::Here();
  stream_ = std::make_unique<BatchStream>(pack_, rows_.train,
                                          StreamOptions{.seed = options_.training.seed,
                                                        .batch_size = options_.dataset.batch_size,
                                                        .epochs = options_.training.num_epochs,
                                                        .rotate = options_.dataset.rotate,
                                                        .flip = options_.dataset.flip,
                                                        .canonical = options_.model.canonical_view,
                                                        .rank = ranks.rank(),
                                                        .ranks = ranks.size()},
                                          position);
}

Tensor Twenty48Trainee::Logits(const Tensor& tokens) {
  const Form form = device().is_cpu() ? Form::kFused : Form::kPlain;
  if (tuple_net_) return tuple_net_->forward(tokens, form);
  if (!options_.attention) return attention_free_->forward(tokens);
  return net_->forward(tokens, form);
}

Tensor Twenty48Trainee::Score(const Batch& batch, learn::Means& means,
                              const std::optional<RowCounts>& all) {
  TargetRows rows = ToTensors(batch, options_.target, binner_).To(device());
  rows.all = all;
  const learn::Autocast autocast(device(), options_.training.use_amp);
  const Tensor logits = Logits(rows.tokens);  // (B, 4, N) or (B, 4)
  const Losses losses = LossOf(logits, rows, options_.target);
  const auto count = static_cast<double>(batch.rows());
  // Losses sum over the ranks to that of all rows, so that their mean counts all rows each time.
  const double scale = all ? all->rows : count;
  means.Add("total_loss", scale * losses.total.item<double>(), count);
  if (options_.target.mode == TargetMode::kTsadSoft) {
    means.Add("kd_loss", scale * losses.kd.item<double>(), count);
    const double aux = losses.aux.defined() ? losses.aux.item<double>() : 0;
    means.Add("aux_ce_loss", scale * aux, count);
  }
  means.Add("move_acc", Played(logits, rows.legal).eq(rows.moves).sum().item<double>(), count);
  return losses.total;
}

std::optional<learn::BatchResult> Twenty48Trainee::Next() {
  const std::optional<Batch> batch = stream_->Next();
  if (!batch) return std::nullopt;
  learn::BatchResult result;
  std::optional<RowCounts> all;
  if (learn::Ranks::Here().size() > 1) {
    all = CountRows(*batch);
    std::array<double, 6> counts = {all->legal[0], all->legal[1], all->legal[2],
                                    all->legal[3], all->sound,    all->rows};
    learn::Ranks::Here().Sum(counts);
    std::copy_n(counts.begin(), 4, all->legal.begin());
    all->sound = counts[4];
    all->rows = counts[5];
  }
  if (batch->rows() > 0) result.loss = Score(*batch, result.means, all);
  result.units = static_cast<uint64_t>(batch->rows());
  result.position = stream_->position();
  result.epoch = static_cast<int64_t>(batch->epoch);
  return result;
}

learn::Means Twenty48Trainee::Validate(const learn::KeepGoing& keep_going) {
  learn::Means means;
  if (rows_.validation.empty()) return means;
  const torch::NoGradGuard no_grad;
  // The same seed, so the same rows each time, from all held-out games.
  BatchStream stream(pack_, rows_.validation,
                     {.seed = 0, .batch_size = 1024, .canonical = options_.model.canonical_view});
  for (int64_t rows = 0; rows < options_.dataset.val_rows && keep_going();) {
    const std::optional<Batch> batch = stream.Next();
    if (!batch) break;
    Score(*batch, means);
    rows += batch->rows();
  }
  return means;
}

}  // namespace kibitz::twenty48
