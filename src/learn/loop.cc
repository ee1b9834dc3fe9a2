#include "learn/loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "io/runs/metrics_log.h"
#include "io/runs/tensorboard.h"
#include "learn/adamw.h"
#include "learn/checkpoint.h"
#include "learn/weights.h"

namespace kibitz::learn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxSkipped = 10;  // Updates in a row.

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A run in its folder; Train() below is the loop itself.
class Run {
 public:
  Run(Trainee& trainee, const RunOptions& options)
      : trainee_(trainee),
        options_(options),
        loop_(options.loop),
        parameters_(trainee.module().parameters()),
        optimizer_(parameters_, loop_),
        folder_(loop_.checkpoint_dir + "/" + options.name, {loop_.keep_checkpoints}) {
    if (options.fresh) Clear();
    Resume();
    const std::optional<int64_t> from = report_.steps;
    metrics_.emplace(folder_.File("metrics.jsonl"), io::MetricsLogOptions{from});
    timing_.emplace(folder_.File("timing.jsonl"), io::MetricsLogOptions{from});
    board_.emplace(folder_.path(), io::TensorBoardOptions{WallTime(), from});
    report_.folder = folder_.path();
  }

  // Whether another step is due; notes why not.
  bool Continues() {
    const auto stop = [&](Stopped why) {
      report_.why = why;
      return false;
    };
    if (Interrupted()) return stop(Stopped::kInterrupted);
    if (loop_.max_steps > 0 && report_.steps >= loop_.max_steps) {
      return stop(Stopped::kMaxSteps);
    }
    if (loop_.max_seconds > 0 && SecondsSince(start_) >= loop_.max_seconds) {
      return stop(Stopped::kMaxSeconds);
    }
    return true;
  }

  // The gradients of one step; false when the data ended before its first batch.
  bool Accumulate() {
    optimizer_.ZeroGradients();
    const double scale = 1.0 / static_cast<double>(loop_.gradient_accumulation_steps);
    for (int64_t i = 0; i < loop_.gradient_accumulation_steps; ++i) {
      if (trainee_.Learn(scale)) continue;
      report_.why = Stopped::kFinished;
      return i > 0;
    }
    return true;
  }

  void Update() {
    learning_rate_ = LearningRateAt(loop_, report_.steps, TotalSteps());
    const double norm = ClipGradients(parameters_, loop_.max_grad_norm);
    if (std::isfinite(norm)) {
      gradient_norm_ = norm;
      skipped_in_a_row_ = 0;
      optimizer_.Step(learning_rate_);
    } else {
      ++report_.skipped_updates;
      if (++skipped_in_a_row_ >= kMaxSkipped) {
        throw Error(
            "step {}: the gradient was no number {} times in a row; lower the learning rate "
            "and go on from {}",
            report_.steps, kMaxSkipped,
            report_.checkpoint.empty() ? "the start" : report_.checkpoint);
      }
    }
    ++report_.steps;
    ++report_.steps_here;
    progress_.Add(1);
  }

  bool IsDue(int64_t every) const { return every > 0 && report_.steps % every == 0; }

  void Log() {
    report_.last_metrics = trainee_.TakeMetrics();
    report_.last_metrics.emplace_back("lr", learning_rate_);
    report_.last_metrics.emplace_back("grad_norm", gradient_norm_);
    report_.last_metrics.emplace_back("epoch", static_cast<double>(trainee_.epoch()));
    WriteValues("train", report_.last_metrics);
    const double speed = UnitsPerSecond();
    timing_->Write({{"step", report_.steps},
                    {"seconds", Seconds()},
                    {trainee_.unit_name() + "_per_second", speed}});
    ShowNote();
  }

  // True when the loss was never lower.
  bool Validate() {
    NamedValues values = trainee_.Validate();
    if (values.empty()) return false;
    report_.last_validation = std::move(values);
    WriteValues("val", report_.last_validation);
    const double loss = report_.last_validation.front().second;
    if (!std::isfinite(loss) || (best_ && *best_ <= loss)) return false;
    best_ = loss;
    return true;
  }

  void Save(bool best) {
    io::Value::Pairs weights;
    for (const io::NamedTensor& item : WeightsOf(trainee_.module())) {
      weights.emplace_back(io::Value::String(item.name), io::Value::Of(item.tensor));
    }
    report_.checkpoint = folder_.Save({.epoch = trainee_.epoch(),
                                       .step = report_.steps,
                                       .model = io::Value::Dict(std::move(weights)),
                                       .optimizer = optimizer_.ToValue(),
                                       .config = options_.config,
                                       .student = trainee_.State(),
                                       .seconds = Seconds(),
                                       .best = best_},
                                      best);
    saved_step_ = report_.steps;
  }

  RunReport Finish() {
    if (saved_step_ != report_.steps) Save(false);
    report_.epoch = trainee_.epoch();
    report_.seconds = Seconds();
    report_.seconds_here = SecondsSince(start_);
    report_.units_per_second = UnitsPerSecond();
    progress_.Finish();
    return std::move(report_);
  }

 private:
  // Only what a run writes: a folder may hold other things.
  void Clear() {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      const bool ours = name.starts_with("checkpoint_step_") || name.starts_with("best.pt") ||
                        name == "metrics.jsonl" || name == "timing.jsonl" ||
                        name.starts_with("events.out.tfevents");
      if (ours) fs::remove(entry.path());
    }
  }

  void Resume() {
    const std::optional<std::string> last = folder_.Last();
    if (!last) return;
    const Checkpoint checkpoint = ReadCheckpoint(*last);
    CheckSameModel(checkpoint.config, *last);
    LoadWeights(trainee_.module(), io::StateDict::From(checkpoint.model, *last), *last);
    optimizer_.Restore(checkpoint.optimizer, *last);
    trainee_.Restore(checkpoint.student);
    report_.steps = saved_step_ = checkpoint.step;
    report_.checkpoint = *last;
    report_.resumed = true;
    best_ = checkpoint.best;
    seconds_before_ = checkpoint.seconds;
    LogInfo("going on from {} (step {}, epoch {}, {} of training so far)", *last, checkpoint.step,
            checkpoint.epoch, HumanSeconds(checkpoint.seconds));
  }

  // Weights of other sizes cannot be gone on with; every other setting may change.
  void CheckSameModel(const Json& before, const std::string& path) const {
    const Json none = Json::object();
    const auto model_of = [&](const Json& config) { return config.value("model", none); };
    const Json now = model_of(options_.config);
    const Json then = model_of(before);
    for (const auto& [key, value] : then.items()) {
      if (!now.contains(key) || now[key] == value) continue;
      throw Error(
          "{}: its run has model.{} {}, the config says {}; use another run_name, or --fresh to "
          "start anew in its place",
          path, key, value.dump(), now[key].dump());
    }
  }

  void WriteValues(const std::string& kind, const NamedValues& values) {
    Json line = {{"step", report_.steps}, {"kind", kind}};
    io::TensorBoardWriter::Values curves;
    for (const auto& [name, value] : values) {
      line[name] = value;
      curves.emplace_back(fmt::format("{}/{}", kind, name), value);
    }
    metrics_->Write(line);
    board_->Write(report_.steps, WallTime(), curves);
  }

  void ShowNote() {
    std::string note;
    for (const std::string& wanted : trainee_.headline()) {
      for (const auto& [name, value] : report_.last_metrics) {
        if (name == wanted) note += fmt::format("{} {:.3f}  ", name, value);
      }
    }
    note += fmt::format("{} {}/s", HumanCount(UnitsPerSecond()), trainee_.unit_name());
    progress_.SetNote(note);
  }

  // Steps of the whole run as far as is known: for the schedule and the time left.
  int64_t TotalSteps() const {
    const int64_t limit = loop_.max_steps;
    const int64_t planned = options_.planned_steps;
    return limit > 0 && planned > 0 ? std::min(limit, planned) : std::max(limit, planned);
  }
  double Seconds() const { return seconds_before_ + SecondsSince(start_); }
  double UnitsPerSecond() const {
    return static_cast<double>(trainee_.units_done()) / std::max(1e-9, SecondsSince(start_));
  }

  Trainee& trainee_;
  const RunOptions& options_;
  const LoopOptions loop_;
  std::vector<torch::Tensor> parameters_;
  AdamW optimizer_;
  RunFolder folder_;
  RunReport report_;
  std::optional<io::MetricsLog> metrics_;
  std::optional<io::MetricsLog> timing_;
  std::optional<io::TensorBoardWriter> board_;
  const Clock::time_point start_ = Clock::now();
  double seconds_before_ = 0;
  double learning_rate_ = 0;
  double gradient_norm_ = 0;
  std::optional<double> best_;
  int64_t saved_step_ = -1;
  int64_t skipped_in_a_row_ = 0;
  Progress progress_{"steps",
                     static_cast<uint64_t>(std::max<int64_t>(0, TotalSteps() - report_.steps))};
};

}  // namespace

std::string_view NameOf(Stopped why) {
  switch (why) {
    case Stopped::kFinished:
      return "all epochs done";
    case Stopped::kMaxSteps:
      return "all steps done";
    case Stopped::kMaxSeconds:
      return "stopped at the time limit";
    case Stopped::kInterrupted:
      return "interrupted";
  }
  return "";
}

RunReport Train(Trainee& trainee, const RunOptions& options) {
  const LoopOptions& loop = options.loop;
  Run run(trainee, options);
  trainee.module().train();
  while (run.Continues() && run.Accumulate()) {
    run.Update();
    if (run.IsDue(loop.log_every_n_steps)) run.Log();
    const bool save = run.IsDue(loop.save_every_n_steps);
    const bool validate =
        loop.validate_every_n_steps > 0 ? run.IsDue(loop.validate_every_n_steps) : save;
    const bool best = validate && run.Validate();
    if (save || best) run.Save(best);
  }
  return run.Finish();
}

}  // namespace kibitz::learn
