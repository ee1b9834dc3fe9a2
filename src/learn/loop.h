// The one training loop. A student brings its network, its batches and its loss. The loop does the
// rest: gradient accumulation, updates, learning rate, logs, validation, checkpoints, resume.
//
//   class MyTrainee : public Trainee { ... };
//   RunReport report = Train(trainee, {.loop = options, .name = "run-1"});
//
// Files of a run, in <checkpoint_dir>/<name>: checkpoints, best.pt, metrics.jsonl (the same bytes
// however often the run was interrupted), timing.jsonl (what depends on the machine), TensorBoard
// events.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "learn/means.h"
#include "learn/options/loop_options.h"

namespace kibitz::learn {

// The forward pass of one training batch.
struct BatchResult {
  torch::Tensor loss;       // Scalar; the loop calls backward.
  Means means;              // Logged as means since the last log.
  NamedValues latest = {};  // Logged as they are after the last batch of a step.
  uint64_t units = 0;       // Tokens or samples in the batch.
  uint64_t position = 0;    // In the training data, after this batch: StartAt resumes there.
  int64_t epoch = 0;        // At that position.
};

// What the loop asks a student once.
struct TraineeFacts {
  std::string unit = "samples";       // What BatchResult::units counts.
  std::vector<std::string> headline;  // Metrics shown in the progress line.
  double batches_per_epoch = 0;
  // A resume on data of another size is refused; 0: not checked.
  uint64_t samples = 0;
  // Empty when there is validation data; else what the user would have to set.
  std::string no_validation = {};
};

// Asked between batches; false: return at once, the result is not used.
using KeepGoing = std::function<bool()>;

class Trainee {
 public:
  // Checks options.device. Throws Error when the machine does not have it.
  explicit Trainee(const LoopOptions& options);
  virtual ~Trainee() = default;

  virtual torch::nn::Module& module() = 0;
  virtual TraineeFacts Facts() const = 0;
  // The next batch is the one after `position`: 0, or a BatchResult's.
  virtual void StartAt(uint64_t position) = 0;
  // Nothing after the last epoch.
  virtual std::optional<BatchResult> Next() = 0;
  // Means over the validation data, "total_loss" first; empty when there is none.
  virtual Means Validate(const KeepGoing& keep_going) = 0;

  // Batches go here; Train moves the module.
  torch::Device device() const { return device_; }

 private:
  torch::Device device_;
};

// Steps that all epochs take; 0 without a limit of epochs.
int64_t PlannedSteps(const TraineeFacts& facts, const LoopOptions& options);

struct RunOptions {
  LoopOptions loop;
  nlohmann::ordered_json config;  // Saved in every checkpoint.
  std::string name = "run";
  bool fresh = false;  // Remove the files of a run that is in the folder, then start at step 0.
  // Refuse to resume when the data or options that shape the weights changed; else a warning says
  // what changed, and later checkpoints keep it.
  bool strict = false;
};

enum class Stopped { kFinished, kMaxSteps, kMaxSeconds, kInterrupted };

struct RunReport {
  Stopped why = Stopped::kFinished;
  int64_t steps = 0;       // Of the run.
  int64_t steps_here = 0;  // Since this start or resume.
  int64_t epoch = 0;
  double seconds = 0;       // Of the run.
  double seconds_here = 0;  // Since this start or resume.
  std::string unit;         // "tokens" or "samples".
  double units_per_second = 0;
  int64_t skipped_updates = 0;  // Since this start or resume: the gradient was NaN or infinite.
  NamedValues last_metrics;
  NamedValues last_validation;
  std::string folder;
  std::string checkpoint;  // The newest.
  bool resumed = false;
};

// For people: "all epochs done", "stopped at the time limit", ...
std::string_view NameOf(Stopped why);

// Takes the lock of the folder. Resumes from its newest checkpoint, if there is one. Ctrl-C and
// max_seconds act between the batches of a step: the unfinished step is discarded and done again by
// a resume. Throws Error when the gradient is NaN or infinite ten times in a row, and for a folder
// that cannot be written.
RunReport Train(Trainee& trainee, const RunOptions& options);

}  // namespace kibitz::learn
