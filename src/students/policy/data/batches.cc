#include "students/policy/data/batches.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {
namespace {

constexpr double kHeldOutShare = 0.01;  // Where the data has no validation split.

// Indices of a split that pass; kept as "all" where all do.
template <typename Passes>
SampleSet Select(const SplitData& data, Split split, const Passes& passes) {
  std::vector<uint32_t> list;
  std::vector<Analysis> scratch;
  if (data.size() > std::numeric_limits<uint32_t>::max()) {
    throw Error("a split of {} positions; at most 2^32 - 1 can be drawn from", data.size());
  }
  for (uint64_t i = 0; i < data.size(); ++i) {
    if (i % 65536 == 0) ThrowIfInterrupted();
    if (passes(data.At(i, scratch))) list.push_back(static_cast<uint32_t>(i));
  }
  if (list.size() == data.size()) return SampleSet(split, data.size());
  return SampleSet(split, std::move(list));
}

bool HeldOut(const Sample& sample) {
  return SplitOf(HashOf(sample.position), {.val = kHeldOutShare, .test = 0}) == Split::kVal;
}

}  // namespace

Fields FieldsOf(DataOptions& options) {
  Fields fields;
  fields.Add("data_dir", options.data_dir, "folder of the data set", {.metavar = "DIR"});
  fields.Add("min_depth", options.min_depth,
             "learn from positions whose deepest analysis is at least this deep",
             {.min = 0, .max = kMaxDepth});
  fields.Add("eval_min_depth", options.eval_min_depth, "the same for deep_acc and deep_loss",
             {.min = 0, .max = kMaxDepth});
  fields.Add("eval_rows", options.eval_rows, "max positions of each evaluation", {.min = 1});
  fields.Add("batch_size", options.batch_size, "positions of a batch", {.min = 1, .max = 1 << 20});
  fields.Add("loader_threads", options.loader_threads, "threads that make batches ahead",
             {.min = 1, .max = 256});
  return fields;
}

SampleSets SelectSamples(const Dataset& data, const DataOptions& options) {
  const SplitData& train = data.split(Split::kTrain);
  const SplitData& val = data.split(Split::kVal);
  const bool own_split = val.size() > 0;
  SampleSets sets;
  sets.train = Select(train, Split::kTrain, [&](const Sample& sample) {
    return !sample.analyses.empty() && DeepestOf(sample.analyses) >= options.min_depth &&
           (own_split || !HeldOut(sample));
  });
  const auto eval = [&](int depth) {
    return Select(own_split ? val : train, own_split ? Split::kVal : Split::kTrain,
                  [&](const Sample& sample) {
                    return !sample.analyses.empty() && DeepestOf(sample.analyses) >= depth &&
                           (own_split || HeldOut(sample));
                  });
  };
  sets.eval = eval(0);
  sets.deep_eval = eval(options.eval_min_depth);
  if (sets.train.size() == 0) {
    throw Error("{}: no position to learn from; is min_depth {} too deep?", data.folder(),
                options.min_depth);
  }
  return sets;
}

int64_t InputForm::size() const { return flat ? kFlatInputs : 64 * ChannelsOf(flip); }

BatchStream::BatchStream(const Dataset& data, const SampleSet& samples,
                         const StreamOptions& options, uint64_t position)
    : data_(data.split(samples.split())),
      vocabulary_(data.vocabulary()),
      samples_(samples),
      options_(options),
      position_(position),
      planned_position_(position),
      pool_(std::make_unique<ThreadPool>(options.threads)) {
  CHECK(samples.size() > 0);
}

BatchStream::~BatchStream() = default;

void BatchStream::PlanAhead() {
  while (planned_.size() < static_cast<size_t>(options_.threads) + 2) {
    const uint64_t epoch = planned_position_ / samples_.size();
    if (options_.epochs > 0 && epoch >= static_cast<uint64_t>(options_.epochs)) return;
    if (order_epoch_ != epoch) {
      order_ = std::make_shared<const Permutation>(samples_.size(),
                                                   StreamKey{.seed = options_.seed,
                                                             .epoch = epoch,
                                                             .sample = 0,
                                                             .purpose = Purpose("policy order")});
      order_epoch_ = epoch;
    }
    const uint64_t begin = planned_position_ % samples_.size();
    const uint64_t end =
        std::min(samples_.size(), begin + static_cast<uint64_t>(options_.batch_size));
    planned_position_ += end - begin;
    planned_.push_back({planned_position_, pool_->Submit([this, order = order_, begin, end, epoch] {
                          return Make(*order, begin, end, epoch);
                        })});
  }
}

std::optional<Batch> BatchStream::Next() {
  PlanAhead();
  if (planned_.empty()) return std::nullopt;
  Planned next = std::move(planned_.front());
  planned_.pop_front();
  Batch batch = next.batch.get();
  position_ = next.end;
  PlanAhead();
  return batch;
}

Batch BatchStream::Make(const Permutation& order, uint64_t begin, uint64_t end,
                        uint64_t epoch) const {
  Batch batch;
  batch.epoch = epoch;
  batch.rows = static_cast<int64_t>(end - begin);
  const int64_t inputs = options_.form.size();
  batch.inputs.resize(static_cast<size_t>(batch.rows * inputs));
  batch.best.reserve(end - begin);
  std::vector<Analysis> scratch;
  std::vector<MoveShare> shares;
  for (uint64_t i = begin; i < end; ++i) {
    const Sample sample = data_.At(samples_[options_.shuffle ? order[i] : i], scratch);
    const auto row = static_cast<int64_t>(i - begin);
    float* to = batch.inputs.data() + row * inputs;
    if (options_.form.flat) {
      WriteFlat(sample.position, to);
    } else {
      WriteChannels(sample.position, options_.form.flip, to);
    }
    shares.clear();
    AppendLabel(sample.analyses, sample.position.black_to_move(), options_.label, shares);
    const bool flipped = options_.form.flip && sample.position.black_to_move();
    int64_t best = 0;
    double best_share = -1;
    for (const MoveShare& share : shares) {
      const uint16_t move = flipped ? vocabulary_.Flipped(share.move) : share.move;
      if (share.share > best_share) {
        best = move;
        best_share = share.share;
      }
      if (static_cast<float>(share.share) == 0) continue;
      batch.label_rows.push_back(row);
      batch.label_moves.push_back(move);
      batch.label_shares.push_back(static_cast<float>(share.share));
    }
    batch.best.push_back(best);
  }
  return batch;
}

}  // namespace kibitz::policy
