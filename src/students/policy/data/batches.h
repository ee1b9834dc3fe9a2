// Shuffled positions of a data set with their labels, in batches. Batch n depends on the seed and n
// alone; worker threads prefetch the next ones.
//
//   const SampleSets sets = SelectSamples(data, options);
//   BatchStream stream(data, sets.train, {.seed = 1, .batch_size = 1024}, position);
//   while (std::optional<Batch> batch = stream.Next()) Learn(*batch);
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/permutation.h"
#include "base/skip_counter.h"
#include "base/thread_pool.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/labels.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {

struct DataOptions {
  std::string data_dir;
  int min_depth = 0;           // Train on positions whose deepest analysis is at least this deep.
  int eval_min_depth = 30;     // The same for deep_acc and deep_loss.
  int64_t eval_rows = 20'000;  // Max positions of each evaluation.
  int batch_size = 1024;
  int loader_threads = 1;  // That prefetch batches.
  double mate_weight = 1;  // In the training loss, of positions with mate in one.
};
Fields FieldsOf(DataOptions& options);

// Positions of one split that can be used: a rule, not a list. Which positions pass is decided when
// they are drawn, so that neither memory nor start-up time grows with the data set.
class SampleSet {
 public:
  // Where the data has no validation split, one position of a hundred is held out by its hash.
  enum class Part : uint8_t { kAll, kLearned, kHeldOut };

  SampleSet() = default;
  SampleSet(const Dataset& data, Split split, Part part, int min_depth);

  Split split() const { return split_; }
  // Positions of the split, those that do not pass included.
  uint64_t candidates() const { return candidates_; }
  // Positions that pass: counted up to 16384 candidates, beyond that estimated from as many.
  uint64_t size() const { return size_; }
  // `depth` as UsableDepth has it.
  bool Passes(const Sample& sample, int depth) const;

 private:
  Split split_ = Split::kTrain;
  Part part_ = Part::kAll;
  int min_depth_ = 0;
  uint64_t candidates_ = 0;
  uint64_t size_ = 0;
};

struct SampleSets {
  SampleSet train;
  SampleSet eval;       // Of the validation split.
  SampleSet deep_eval;  // Those of it that are at least eval_min_depth deep.
};
// Throws Error when there is nothing to learn from.
SampleSets SelectSamples(const Dataset& data, const DataOptions& options);

struct Batch {
  int64_t rows = 0;
  std::vector<float> inputs;  // rows * InputForm::size()
  // Labels, sparse: in row label_rows[e] the move label_moves[e] has probability label_shares[e].
  std::vector<int64_t> label_rows;
  std::vector<int64_t> label_moves;
  // Shares of a row sum to its weight in the loss: 1, or StreamOptions::mate_weight.
  std::vector<float> label_shares;
  std::vector<int64_t> best;  // Of each row: the likeliest move of the label.
  uint64_t epoch = 0;
};

struct StreamOptions {
  uint64_t seed = 0;
  int batch_size = 1024;
  int64_t epochs = 1;   // 0: no end.
  bool shuffle = true;  // Again for each epoch.
  InputForm form = {};
  LabelOptions label = {};
  double mate_weight = 1;
  int threads = 1;
  // R ranks of batch_size B share the positions that one of batch_size R B has.
  int rank = 0;
  int ranks = 1;
};

class BatchStream {
 public:
  // Data and samples are borrowed. Starts behind the first `position` candidates of all epochs.
  BatchStream(const Dataset& data, const SampleSet& samples, const StreamOptions& options,
              uint64_t position = 0);
  ~BatchStream();

  // Nothing at the end. The last batch of an epoch may be smaller, and empty on some ranks. Throws
  // Error, also when no position of an epoch can be used.
  std::optional<Batch> Next();
  // Candidates drawn for the batches so far, those before the start included: where to resume.
  uint64_t position() const { return position_; }
  // Of the first epoch: what could not be used. Positions that are only too shallow do not count.
  const SkipCounter& skipped() const { return skipped_; }

 private:
  // A candidate that passes, and the position behind it.
  struct Drawn {
    uint64_t index = 0;
    uint64_t end = 0;
  };
  struct Looked {
    std::vector<Drawn> passed;
    SkipCounter skipped;
  };
  // Consecutive candidates of one epoch.
  struct Draw {
    uint64_t epoch = 0;
    uint64_t candidates = 0;
    std::future<Looked> looked;
  };
  struct Planned {
    uint64_t end = 0;  // Position behind it.
    std::future<Batch> batch;
  };

  void PlanAhead();
  // False at the end of all epochs.
  bool PlanBatch();
  // Gathers the candidates of the next batch in waiting_; false at the end of all epochs.
  bool Gather();
  void DrawAhead();
  Looked LookAt(const Permutation& order, uint64_t begin, uint64_t end, uint64_t epoch) const;
  Batch Make(const std::vector<Drawn>& drawn, uint64_t epoch) const;
  // Of a batch, on all ranks.
  size_t AllRows() const {
    return static_cast<size_t>(options_.batch_size) * static_cast<size_t>(options_.ranks);
  }
  bool EpochHasMore() const { return !draws_.empty() && draws_.front().epoch == epoch_; }

  const Dataset& dataset_;
  const SplitData& data_;
  const SampleSet& samples_;
  StreamOptions options_;
  uint64_t position_;
  uint64_t drawn_position_;  // Behind the last draw.
  std::optional<uint64_t> order_epoch_;
  std::shared_ptr<const Permutation> order_;
  std::deque<Draw> draws_;
  uint64_t epoch_ = 0;         // Of the next batch.
  uint64_t looked_at_ = 0;     // Candidates of this epoch ...
  uint64_t passed_ = 0;        // ... and those that passed.
  std::deque<Drawn> waiting_;  // Passed, not in a batch yet.
  SkipCounter skipped_;
  std::deque<Planned> planned_;
  std::unique_ptr<ThreadPool> pool_;  // Last: it stops before what its tasks use goes.
};

}  // namespace kibitz::policy
