// Positions of a data set in a drawn order, with their labels, as many at a time as a step takes.
// Batch n depends on the seed and n alone; worker threads make the next ones meanwhile.
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
#include "base/thread_pool.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/labels.h"

namespace kibitz::policy {

struct DataOptions {
  std::string data_dir;
  int min_depth = 0;           // Learn from positions whose deepest analysis is at least this deep.
  int eval_min_depth = 30;     // The same for the second of the two evaluations.
  int64_t eval_rows = 20'000;  // Positions of each evaluation, at most.
  int batch_size = 1024;
  int loader_threads = 1;  // That make batches ahead.
};
Fields FieldsOf(DataOptions& options);

// Positions of one split that are used: all of them, or a list.
class SampleSet {
 public:
  SampleSet() = default;
  SampleSet(Split split, uint64_t all) : split_(split), size_(all) {}
  SampleSet(Split split, std::vector<uint32_t> list)
      : split_(split), size_(list.size()), list_(std::move(list)) {}

  Split split() const { return split_; }
  uint64_t size() const { return size_; }
  uint64_t operator[](uint64_t i) const { return list_.empty() ? i : list_[i]; }

 private:
  Split split_ = Split::kTrain;
  uint64_t size_ = 0;
  std::vector<uint32_t> list_;
};

struct SampleSets {
  SampleSet train;
  SampleSet eval;       // Of the validation split.
  SampleSet deep_eval;  // Those of it that are at least eval_min_depth deep.
};
// Positions without an analysis are not used. Where the data has no validation split, one position
// of a hundred is held out by its hash. Throws Error when there is nothing to learn from.
SampleSets SelectSamples(const Dataset& data, const DataOptions& options);

// What a network takes of a position.
struct InputForm {
  bool flat = false;  // kFlatInputs numbers plane by plane, else channels square by square.
  bool flip = false;
  int64_t size() const;
};

struct Batch {
  int64_t rows = 0;
  std::vector<float> inputs;  // rows * InputForm::size()
  // Labels: entry e says that in row label_rows[e] the move label_moves[e] has this share.
  std::vector<int64_t> label_rows;
  std::vector<int64_t> label_moves;
  std::vector<float> label_shares;
  std::vector<int64_t> best;  // Of each row: the move with the greatest share.
  uint64_t epoch = 0;
};

struct StreamOptions {
  uint64_t seed = 0;
  int batch_size = 1024;
  int64_t epochs = 1;   // 0: no end.
  bool shuffle = true;  // Anew for each epoch.
  InputForm form = {};
  LabelOptions label = {};
  int threads = 1;
};

class BatchStream {
 public:
  // Data and samples are borrowed. Begins behind the first `position` samples of all epochs.
  BatchStream(const Dataset& data, const SampleSet& samples, const StreamOptions& options,
              uint64_t position = 0);
  ~BatchStream();

  // Nothing at the end. The last batch of an epoch may be smaller. Throws Error.
  std::optional<Batch> Next();
  // Samples handed out, those before the start included.
  uint64_t position() const { return position_; }

 private:
  struct Planned {
    uint64_t end = 0;  // Position behind it.
    std::future<Batch> batch;
  };

  void PlanAhead();
  Batch Make(const Permutation& order, uint64_t begin, uint64_t end, uint64_t epoch) const;

  const SplitData& data_;
  const Vocabulary& vocabulary_;
  const SampleSet& samples_;
  StreamOptions options_;
  uint64_t position_;
  uint64_t planned_position_;
  std::optional<uint64_t> order_epoch_;
  std::shared_ptr<const Permutation> order_;
  std::deque<Planned> planned_;
  std::unique_ptr<ThreadPool> pool_;  // Last: it stops before what its tasks use goes.
};

}  // namespace kibitz::policy
