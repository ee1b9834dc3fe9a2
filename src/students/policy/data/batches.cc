#include "students/policy/data/batches.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "students/policy/data/target.h"

namespace kibitz::policy {
namespace {

constexpr double kHeldOutShare = 0.01;  // Where the data has no validation split.

// Candidates counted to tell the size of a set, and how many of them lie side by side.
constexpr uint64_t kCounted = 16384;
constexpr uint64_t kCountedTogether = 16;

bool HeldOut(const Sample& sample) {
  return SplitOf(HashOf(sample.position), {.val = kHeldOutShare, .test = 0}) == Split::kVal;
}

// The i-th of kCounted candidates, spread over all of them.
uint64_t Counted(uint64_t i, uint64_t candidates) {
  if (candidates <= kCounted) return i;
  const uint64_t block = candidates / (kCounted / kCountedTogether);
  return i / kCountedTogether * block + i % kCountedTogether;
}

}  // namespace

Fields FieldsOf(DataOptions& options) {
  Fields fields;
  fields.Add("data_dir", options.data_dir, "folder of the data set", {.metavar = "DIR"});
  fields.Add("min_depth", options.min_depth,
             "train on positions whose deepest analysis is at least this deep",
             {.min = 0, .max = kMaxDepth});
  fields.Add("eval_min_depth", options.eval_min_depth,
             "validate deep_acc and deep_loss on positions at least this deep",
             {.min = 0, .max = kMaxDepth});
  fields.Add("eval_rows", options.eval_rows, "max positions of each evaluation", {.min = 1});
  fields.Add("batch_size", options.batch_size, "positions of a batch", {.min = 1, .max = 1 << 20});
  fields.Add("loader_threads", options.loader_threads, "threads that prefetch batches",
             {.min = 1, .max = 256});
  fields.Add("mate_weight", options.mate_weight,
             "weight in the training loss of positions with mate in one", {.min = 0, .max = 1000});
  return fields;
}

SampleSet::SampleSet(const Dataset& data, Split split, Part part, int min_depth)
    : split_(split), part_(part), min_depth_(min_depth), candidates_(data.split(split).size()) {
  const uint64_t counted = std::min(candidates_, kCounted);
  const SplitData& positions = data.split(split);
  uint64_t passed = 0;
  if (counted < candidates_) positions.BeginScatteredReads();
  std::vector<Analysis> scratch;
  for (uint64_t i = 0; i < counted; ++i) {
    if (i % 4096 == 0) ThrowIfInterrupted();
    const auto sample = positions.TryAt(Counted(i, candidates_), scratch);
    passed += sample && Passes(*sample, UsableDepth(*sample, data.vocabulary(), false)) ? 1 : 0;
  }
  if (counted < candidates_) positions.EndScatteredReads();
  size_ = counted == candidates_ || passed == counted
              ? passed + candidates_ - counted
              : static_cast<uint64_t>(static_cast<double>(candidates_) *
                                      static_cast<double>(passed) / static_cast<double>(counted));
}

bool SampleSet::Passes(const Sample& sample, int depth) const {
  if (depth < 0 || depth < min_depth_) return false;
  return part_ == Part::kAll || HeldOut(sample) == (part_ == Part::kHeldOut);
}

SampleSets SelectSamples(const Dataset& data, const DataOptions& options) {
  using Part = SampleSet::Part;
  const bool own_split = data.split(Split::kVal).size() > 0;
  const auto eval = [&](int min_depth) {
    return SampleSet(data, own_split ? Split::kVal : Split::kTrain,
                     own_split ? Part::kAll : Part::kHeldOut, min_depth);
  };
  const SampleSets sets = {
      .train = SampleSet(data, Split::kTrain, own_split ? Part::kAll : Part::kLearned,
                         options.min_depth),
      .eval = eval(0),
      .deep_eval = eval(options.eval_min_depth)};
  if (sets.train.size() == 0) {
    throw Error("{}: no position to learn from; is min_depth {} too deep?", data.folder(),
                options.min_depth);
  }
  return sets;
}

BatchStream::BatchStream(const Dataset& data, const SampleSet& samples,
                         const StreamOptions& options, uint64_t position)
    : dataset_(data),
      data_(data.split(samples.split())),
      samples_(samples),
      options_(options),
      position_(position),
      drawn_position_(position),
      pool_(std::make_unique<ThreadPool>(options.threads)) {
  CHECK(samples.candidates() > 0);
  epoch_ = position / samples.candidates();
}

BatchStream::~BatchStream() = default;

void BatchStream::DrawAhead() {
  const uint64_t size = samples_.candidates();
  while (draws_.size() < static_cast<size_t>(options_.threads) + 2) {
    const uint64_t epoch = drawn_position_ / size;
    if (options_.epochs > 0 && epoch >= static_cast<uint64_t>(options_.epochs)) return;
    if (order_epoch_ != epoch) {
      order_ =
          std::make_shared<const Permutation>(size, StreamKey{.seed = options_.seed,
                                                              .epoch = epoch,
                                                              .sample = 0,
                                                              .purpose = Purpose("policy order")});
      order_epoch_ = epoch;
    }
    const uint64_t begin = drawn_position_ % size;
    const uint64_t end = std::min(size, begin + static_cast<uint64_t>(AllRows()));
    drawn_position_ += end - begin;
    draws_.push_back({epoch, end - begin, pool_->Submit([this, order = order_, begin, end, epoch] {
                        return LookAt(*order, begin, end, epoch);
                      })});
  }
}

BatchStream::Looked BatchStream::LookAt(const Permutation& order, uint64_t begin, uint64_t end,
                                        uint64_t epoch) const {
  Looked looked;
  const auto skip = [&](const char* reason, uint64_t index, std::string detail) {
    if (epoch > 0) return;
    looked.skipped.Add(reason,
                       {.file = fmt::format("{}, {}", dataset_.folder(), NameOf(samples_.split())),
                        .row = static_cast<int64_t>(index),
                        .detail = std::move(detail)});
  };
  std::vector<Analysis> scratch;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t index = options_.shuffle ? order[i] : i;
    const Result<Sample> sample = data_.TryAt(index, scratch);
    if (!sample) {
      skip("unreadable position", index, sample.reason());
      continue;
    }
    for (const Analysis& analysis : sample->analyses) {
      if (analysis.move < dataset_.vocabulary().size()) continue;
      skip("analysis of a move outside the vocabulary", index,
           fmt::format("move {} of {}", analysis.move, dataset_.vocabulary().size()));
    }
    const int depth = UsableDepth(*sample, dataset_.vocabulary(), options_.form.flip);
    if (depth < 0) skip("position without a usable analysis", index, "");
    if (!samples_.Passes(*sample, depth)) continue;
    looked.passed.push_back({index, epoch * samples_.candidates() + i + 1});
  }
  return looked;
}

bool BatchStream::Gather() {
  while (true) {
    DrawAhead();
    if (EpochHasMore() && waiting_.size() < AllRows()) {
      Draw draw = std::move(draws_.front());
      draws_.pop_front();
      const Looked looked = draw.looked.get();
      looked_at_ += draw.candidates;
      passed_ += looked.passed.size();
      waiting_.insert(waiting_.end(), looked.passed.begin(), looked.passed.end());
      skipped_.MergeAndWarn(looked.skipped);
      continue;
    }
    if (!waiting_.empty()) return true;
    if (looked_at_ == samples_.candidates() && passed_ == 0) {
      throw Error(
          "{}, {}: no position can be used: {}", dataset_.folder(), NameOf(samples_.split()),
          skipped_.empty() ? "all are too shallow; choose a smaller depth" : skipped_.Text());
    }
    if (draws_.empty()) return false;
    epoch_ = draws_.front().epoch;
    looked_at_ = 0;
    passed_ = 0;
  }
}

bool BatchStream::PlanBatch() {
  if (!Gather()) return false;
  const size_t rows = std::min(waiting_.size(), AllRows());
  const auto behind = waiting_.begin() + static_cast<std::ptrdiff_t>(rows);
  std::vector<Drawn> drawn(waiting_.begin(), behind);
  waiting_.erase(waiting_.begin(), behind);
  // Candidates behind the last one that passed belong to the last batch.
  const bool last = waiting_.empty() && !EpochHasMore();
  const uint64_t end = last ? (epoch_ + 1) * samples_.candidates() : drawn.back().end;
  if (options_.ranks > 1) {
    std::vector<Drawn> own;
    for (size_t i = static_cast<size_t>(options_.rank); i < drawn.size();
         i += static_cast<size_t>(options_.ranks)) {
      own.push_back(drawn[i]);
    }
    drawn = std::move(own);
  }
  planned_.push_back({end, pool_->Submit([this, drawn = std::move(drawn), epoch = epoch_] {
                        return Make(drawn, epoch);
                      })});
  return true;
}

void BatchStream::PlanAhead() {
  while (planned_.size() < static_cast<size_t>(options_.threads) + 2) {
    if (!PlanBatch()) return;
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

Batch BatchStream::Make(const std::vector<Drawn>& drawn, uint64_t epoch) const {
  Batch batch;
  batch.epoch = epoch;
  batch.rows = static_cast<int64_t>(drawn.size());
  const int64_t inputs = options_.form.size();
  batch.inputs.resize(static_cast<size_t>(batch.rows * inputs));
  batch.best.reserve(drawn.size());
  std::vector<Analysis> scratch;
  Target target;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const Sample sample = data_.At(drawn[static_cast<size_t>(row)].index, scratch);
    WriteInputs(sample.position, options_.form, batch.inputs.data() + row * inputs);
    MakeTarget(sample, dataset_.vocabulary(), {.flip = options_.form.flip, .label = options_.label},
               target);
    const bool mates =
        options_.mate_weight != 1 && MatesInOne(sample.analyses, sample.position.black_to_move());
    const double weight = mates ? options_.mate_weight : 1;
    for (const MoveShare& share : target.shares) {
      if (static_cast<float>(share.share) == 0) continue;
      batch.label_rows.push_back(row);
      batch.label_moves.push_back(share.move);
      batch.label_shares.push_back(static_cast<float>(weight * share.share));
    }
    batch.best.push_back(target.best);
  }
  return batch;
}

}  // namespace kibitz::policy
