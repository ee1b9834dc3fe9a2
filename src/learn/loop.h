// The one training loop. A student brings its network, its batches and its loss; the loop brings
// everything else: updates, schedule, clipping, logs, validation, checkpoints, resume, stopping.
//
//   class MyTrainee : public Trainee { ... };
//   RunReport report = Train(trainee, {.loop = ..., .config = ..., .name = "run-1"});
//
// Files of a run, in <checkpoint_dir>/<name>: checkpoints, metrics.jsonl (the same bytes however
// often the run was interrupted), timing.jsonl (what depends on the machine), TensorBoard events.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/weights/value.h"
#include "learn/options/loop_options.h"

namespace kibitz::learn {

using NamedValues = std::vector<std::pair<std::string, double>>;

class Trainee {
 public:
  virtual ~Trainee() = default;

  virtual torch::nn::Module& module() = 0;
  // Takes the next batch and adds the gradient of scale * loss to the parameters. False, with
  // nothing done, when the data have ended.
  virtual bool Learn(double scale) = 0;
  // Means since the last call of this function, and what they are of is forgotten.
  virtual NamedValues TakeMetrics() = 0;
  // Means over held-out data, "total_loss" first; empty when there are none.
  virtual NamedValues Validate() = 0;

  // What a resume needs besides the weights: the place in the data, means not yet taken.
  virtual io::Value State() const = 0;
  virtual void Restore(const io::Value& state) = 0;

  virtual int64_t epoch() const = 0;
  // Tokens or samples taken in this stretch, for the speed shown, and their name.
  virtual uint64_t units_done() const = 0;
  virtual std::string unit_name() const = 0;
  // The values worth a place in the progress line.
  virtual std::vector<std::string> headline() const = 0;
};

struct RunOptions {
  LoopOptions loop;
  nlohmann::ordered_json config;  // Kept in every checkpoint.
  std::string name = "run";
  int64_t planned_steps = 0;  // That the epochs take, about; 0: not known.
  bool fresh = false;         // Start anew in a folder that has a run; its files are removed first.
};

enum class Stopped { kFinished, kMaxSteps, kMaxSeconds, kInterrupted };

struct RunReport {
  Stopped why = Stopped::kFinished;
  int64_t steps = 0;       // Of the run.
  int64_t steps_here = 0;  // Of this stretch.
  int64_t epoch = 0;
  double seconds = 0;       // Of the run.
  double seconds_here = 0;  // Of this stretch.
  double units_per_second = 0;
  int64_t skipped_updates = 0;  // Whose gradient was no number, in this stretch.
  NamedValues last_metrics;
  NamedValues last_validation;
  std::string folder;
  std::string checkpoint;  // The last one.
  bool resumed = false;
};

// Why in words: "all epochs done", "stopped at --max-seconds", ...
std::string_view NameOf(Stopped why);

// Goes on where the folder's newest checkpoint ends. Throws Error when the gradient is no number
// ten times in a row, and for a folder that cannot be written.
RunReport Train(Trainee& trainee, const RunOptions& options);

}  // namespace kibitz::learn
