#include "learn/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/write_lock.h"
#include "io/runs/log_pipe.h"
#include "io/runs/metrics_log.h"
#include "io/runs/tensorboard.h"
#include "learn/adamw.h"
#include "learn/checkpoint.h"
#include "learn/device.h"
#include "learn/ranks.h"
#include "learn/run_changes.h"
#include "learn/weights.h"

namespace kibitz::learn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxSkipped = 10;  // Updates in a row.

// Validation may take so much longer than max_seconds: a tenth of it, and this at least.
constexpr double kGraceSeconds = 30;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What a resume needs of the data besides the weights.
struct DataState {
  uint64_t position = 0;
  int64_t epoch = 0;
  Means means;  // Since the last log.

  io::Value ToValue(uint64_t samples) const {
    using io::Value;
    return Value::Dict({{Value::String("position"), Value::Int(static_cast<int64_t>(position))},
                        {Value::String("epoch"), Value::Int(epoch)},
                        {Value::String("samples"), Value::Int(static_cast<int64_t>(samples))},
                        {Value::String("means"), means.ToValue()}});
  }
  // Checkpoints of earlier versions have sums in other layouts: their first log line after a resume
  // has the means of the steps since then.
  static DataState From(const io::Value& value) {
    DataState state;
    state.position = static_cast<uint64_t>(value.Get("position").AsInt());
    state.epoch = value.Get("epoch").AsInt();
    if (const io::Value* means = value.Find("means")) state.means = Means::From(*means);
    return state;
  }
};

// A run in its folder; Train() below is the loop itself.
class Run {
 public:
  Run(Trainee& trainee, const RunOptions& options)
      : trainee_(trainee),
        options_(options),
        loop_(options.loop),
        facts_(trainee.Facts()),
        parameters_(trainee.module().parameters()),
        optimizer_(parameters_, loop_),
        gradients_(parameters_),
        folder_(loop_.checkpoint_dir + "/" + options.name, {loop_.keep_checkpoints}) {
    if (ranks_.first()) {
      lock_.emplace(WriteLock::OfFolder(loop_.checkpoint_dir + "/" + options.name));
      if (options.fresh) Clear();
    }
    Agree(0);  // The others wait for rank 0 to clear the folder.
    data_ = DataFingerprints(options.config);
    Resume();
    if (Agree(static_cast<double>(report_.steps)) !=
        static_cast<double>(report_.steps) * ranks_.size()) {
      throw Error("{}: rank {} sees step {}, others another one; all ranks need the same folder",
                  folder_.path(), ranks_.rank(), report_.steps);
    }
    const std::optional<int64_t> from = report_.steps;
    if (ranks_.first()) {
      metrics_.emplace(folder_.File("metrics.jsonl"), io::MetricsLogOptions{from});
      timing_.emplace(folder_.File("timing.jsonl"), io::MetricsLogOptions{from});
      board_.emplace(folder_.path(), io::TensorBoardOptions{WallTime(), from});
      if (!loop_.log_command.empty()) pipe_.emplace(loop_.log_command);
    } else {
      state_.means = {};  // Rank 0 goes on with those of all.
    }
    report_.folder = folder_.path();
    report_.unit = facts_.unit;
    if (!facts_.no_validation.empty()) {
      LogInfo(
          "no validation data ({}): this run has no validation loss and no best.pt; other commands "
          "take its newest checkpoint_step_N.pt",
          facts_.no_validation);
    }
    if (ranks_.first()) {
      progress_.emplace("steps", static_cast<uint64_t>(TotalSteps()),
                        Progress::Options{.start = static_cast<uint64_t>(report_.steps),
                                          .max_seconds = loop_.max_seconds});
    }
    trainee_.StartAt(state_.position);
    if (validation_owed_ && Validate(Validation::kScheduled)) Save(/*best=*/true);
  }

  // Whether another step is due; notes why not.
  bool Continues() {
    if (loop_.max_steps > 0 && report_.steps >= loop_.max_steps) {
      report_.why = Stopped::kMaxSteps;
      return false;
    }
    return !StopIsAsked();
  }

  // The gradients of one step. False when the data ended before its first batch, or when the run
  // is to stop: then the step is as if it had not begun.
  bool Accumulate() {
    optimizer_.ZeroGradients();
    const int64_t batches = loop_.gradient_accumulation_steps;
    const double scale = 1.0 / static_cast<double>(batches);
    DataState next = state_;
    for (int64_t i = 0; i < batches; ++i) {
      if (i > 0 && StopIsAsked()) return false;
      std::optional<BatchResult> batch = trainee_.Next();
      if (!batch) {
        report_.why = Stopped::kFinished;
        if (i == 0) return false;
        gradients_.Begin();  // The step ends here, on all ranks.
        break;
      }
      // Of a rank without samples in the last batch of the data there is no loss.
      if (i + 1 == batches) gradients_.Begin();
      if (batch->loss.defined()) (batch->loss * scale).backward();
      next.means += batch->means;
      next.position = batch->position;
      next.epoch = batch->epoch;
      latest_ = std::move(batch->latest);
      own_units_ += batch->units;
      units_ += batch->units * static_cast<uint64_t>(ranks_.size());
      if (i + 1 < batches) ShowProgress(i + 1);
    }
    gradients_.Finish();
    state_ = std::move(next);
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
            "step {}: the gradient was NaN or infinite {} times in a row; lower "
            "training.learning_rate and resume from {}",
            report_.steps, kMaxSkipped,
            report_.checkpoint.empty() ? "the start" : report_.checkpoint);
      }
    }
    ++report_.steps;
    ++report_.steps_here;
    ShowProgress(/*batches=*/0, /*steps=*/1);
  }

  bool IsDue(int64_t every) const { return every > 0 && report_.steps % every == 0; }
  bool ValidationIsDue() const {
    return IsDue(loop_.validate_every_n_steps > 0 ? loop_.validate_every_n_steps
                                                  : loop_.save_every_n_steps);
  }

  void Log() {
    report_.last_metrics = MeansOfAll().Values();
    state_.means = {};
    std::array<double, 1> units = {static_cast<double>(own_units_)};
    ranks_.Sum(units);
    units_ = static_cast<uint64_t>(units[0]);
    for (const auto& value : latest_) report_.last_metrics.push_back(value);
    report_.last_metrics.emplace_back("lr", learning_rate_);
    report_.last_metrics.emplace_back("grad_norm", gradient_norm_);
    report_.last_metrics.emplace_back("epoch", static_cast<double>(state_.epoch));
    WriteValues("train", report_.last_metrics);
    if (timing_) {
      Json line = {{"step", report_.steps},
                   {"seconds", Seconds()},
                   {facts_.unit + "_per_second", UnitsPerSecond()}};
      if (ranks_.size() > 1) {
        line["ranks"] = ranks_.size();
        line["communication_share"] = ranks_.waited() / std::max(1e-9, SecondsSince(start_));
      }
      timing_->Write(line);
    }
    ShowProgress(0);
  }

  enum class Validation { kScheduled, kClosing };
  // True when the loss was never lower. A validation that is cut short counts for nothing; a
  // scheduled one is owed and done first by a resume, so that its line is not missing.
  bool Validate(Validation kind) {
    const Means means = trainee_.Validate([this] { return KeepsValidating(); });
    const bool cut = facts_.no_validation.empty() && Agree(KeepsValidating() ? 0 : 1) > 0;
    validation_owed_ = cut && kind == Validation::kScheduled;
    if (cut || means.empty()) return false;
    report_.last_validation = means.Values();
    validated_step_ = report_.steps;
    WriteValues("val", report_.last_validation, kind == Validation::kClosing);
    const double loss = report_.last_validation.front().second;
    if (!std::isfinite(loss) || (best_ && *best_ <= loss)) return false;
    best_ = loss;
    return true;
  }

  void Save(bool best) {
    DataState state = state_;
    state.means = MeansOfAll();
    saved_step_ = report_.steps;
    if (!ranks_.first()) return;
    report_.checkpoint = folder_.Save({.epoch = state_.epoch,
                                       .step = report_.steps,
                                       .model = io::ToDict(WeightsOf(trainee_.module())),
                                       .optimizer = optimizer_.ToValue(),
                                       .config = options_.config,
                                       .student = state.ToValue(facts_.samples),
                                       .data = data_,
                                       .changes = changes_,
                                       .seconds = Seconds(),
                                       .best = best_,
                                       .validation_owed = validation_owed_},
                                      best);
  }

  RunReport Finish() {
    const bool validates = facts_.no_validation.empty();
    const bool closes = validates && report_.why != Stopped::kInterrupted && !validation_owed_ &&
                        validated_step_ != report_.steps;
    const bool best = closes && Validate(Validation::kClosing);
    if (best || saved_step_ != report_.steps) Save(best);
    if (validates && ranks_.first() && !folder_.HasBest()) {
      folder_.NameBest(report_.checkpoint);
      LogWarn("{} was not validated: the run stopped before; best.pt is a copy of it for now",
              report_.checkpoint);
    }
    report_.epoch = state_.epoch;
    report_.seconds = Seconds();
    report_.seconds_here = SecondsSince(start_);
    report_.units_per_second = UnitsPerSecond();
    if (progress_) progress_->Finish();
    return std::move(report_);
  }

 private:
  // Ctrl-C, SIGTERM or the time limit; notes which.
  bool StopIsAsked() {
    const bool late = loop_.max_seconds > 0 && SecondsSince(start_) >= loop_.max_seconds;
    std::array<double, 2> asked = {Interrupted() ? 1.0 : 0.0, late ? 1.0 : 0.0};
    ranks_.Sum(asked);
    if (asked[0] > 0) report_.why = Stopped::kInterrupted;
    if (asked[0] == 0 && asked[1] > 0) report_.why = Stopped::kMaxSeconds;
    return asked[0] + asked[1] > 0;
  }
  // The sum over all ranks.
  double Agree(double number) {
    ranks_.Sum({&number, 1});
    return number;
  }
  // Means since the last log, of all ranks.
  Means MeansOfAll() {
    if (ranks_.size() == 1) return state_.means;
    Means all;
    for (const std::string& text : ranks_.Gather(state_.means.ToJson().dump())) {
      all += Means::From(Json::parse(text));
    }
    return all;
  }
  bool KeepsValidating() const {
    if (Interrupted()) return false;
    const double grace = std::max(kGraceSeconds, loop_.max_seconds / 10);
    return loop_.max_seconds <= 0 || SecondsSince(start_) < loop_.max_seconds + grace;
  }

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
    std::optional<std::string> last;
    const std::optional<Checkpoint> newest = folder_.ReadNewest(last);
    if (!newest) return;
    const Checkpoint& checkpoint = *newest;
    CheckSameModel(checkpoint.config, *last);
    CheckSameData(checkpoint.student, *last);
    NoteChanges(checkpoint, *last);
    LoadWeights(trainee_.module(), io::StateDict::From(checkpoint.model, *last), *last);
    optimizer_.Restore(checkpoint.optimizer, *last);
    state_ = DataState::From(checkpoint.student);
    report_.steps = saved_step_ = checkpoint.step;
    report_.checkpoint = *last;
    report_.resumed = true;
    best_ = checkpoint.best;
    validation_owed_ = checkpoint.validation_owed;
    // A run that ended with a validation on schedule needs no closing one.
    if (ValidationIsDue() && !validation_owed_ && folder_.HasBest()) {
      validated_step_ = checkpoint.step;
    }
    seconds_before_ = checkpoint.seconds;
    LogInfo("resuming from {} (step {}, epoch {}, {} of training so far)", *last, checkpoint.step,
            checkpoint.epoch, HumanSeconds(checkpoint.seconds));
  }

  // A resume needs weights of the same shape; every other option may change.
  void CheckSameModel(const Json& before, const std::string& path) const {
    const Json none = Json::object();
    const auto model_of = [&](const Json& config) { return config.value("model", none); };
    const Json now = model_of(options_.config);
    const Json then = model_of(before);
    for (const auto& [key, value] : then.items()) {
      if (!now.contains(key) || now[key] == value) continue;
      throw Error(
          "{}: its run has model.{} {}, the config says {}; use another run_name, or --fresh to "
          "start over in this folder",
          path, key, value.dump(), now[key].dump());
    }
  }

  void CheckSameData(const io::Value& state, const std::string& path) const {
    const io::Value* samples = state.Find("samples");
    if (samples == nullptr || samples->AsInt() == 0 || facts_.samples == 0) return;
    if (static_cast<uint64_t>(samples->AsInt()) == facts_.samples) return;
    throw Error(
        "{}: its run trains on {} samples, the data now has {}; use the same data and filters, "
        "another run_name, or --fresh to start over in this folder",
        path, samples->AsInt(), facts_.samples);
  }

  void NoteChanges(const Checkpoint& checkpoint, const std::string& path) {
    changes_ = checkpoint.changes;
    const std::vector<std::string> changes =
        ChangesSince({checkpoint.config, checkpoint.data}, {options_.config, data_});
    if (changes.empty()) return;
    const std::string text = fmt::format("{}", fmt::join(changes, "; "));
    if (options_.strict) {
      throw Error(
          "{}: its run differs: {}; give the same options and data, leave out --strict to go on "
          "all "
          "the same, or use another run_name",
          path, text);
    }
    LogWarn("resuming with changes: {}", text);
    changes_.push_back(fmt::format("step {}: {}", checkpoint.step, text));
  }

  // A closing validation is not part of the run's schedule: a resume drops its line.
  void WriteValues(const std::string& kind, const NamedValues& values, bool closing = false) {
    Json line = {{"step", report_.steps}, {"kind", kind}};
    io::TensorBoardWriter::Values curves;
    for (const auto& [name, value] : values) {
      line[name] = value;
      curves.emplace_back(fmt::format("{}/{}", kind, name), value);
    }
    if (closing) line["closing"] = true;
    if (!metrics_) return;
    metrics_->Write(line);
    if (pipe_) pipe_->Write(line.dump());
    board_->Write(report_.steps, WallTime(), curves);
  }

  // `batches`: done of the step under way; `steps`: finished since the last call.
  void ShowProgress(int64_t batches, uint64_t steps = 0) {
    std::string note;
    if (batches > 0) {
      note = fmt::format("batch {}/{}  ", batches, loop_.gradient_accumulation_steps);
    }
    for (const std::string& wanted : facts_.headline) {
      for (const auto& [name, value] : report_.last_metrics) {
        if (name == wanted) note += fmt::format("{} {:.3f}  ", name, value);
      }
    }
    note += fmt::format("{} {}/s", HumanCount(UnitsPerSecond()), facts_.unit);
    if (!progress_) return;
    progress_->SetNote(note);
    progress_->Add(steps);
  }

  // Steps of the whole run as far as is known: for the schedule and the time left.
  int64_t TotalSteps() const {
    const int64_t limit = loop_.max_steps;
    const int64_t planned = PlannedSteps(facts_, loop_);
    return limit > 0 && planned > 0 ? std::min(limit, planned) : std::max(limit, planned);
  }
  double Seconds() const { return seconds_before_ + SecondsSince(start_); }
  double UnitsPerSecond() const {
    return static_cast<double>(units_) / std::max(1e-9, SecondsSince(start_));
  }

  Trainee& trainee_;
  const RunOptions& options_;
  const LoopOptions loop_;
  const TraineeFacts facts_;
  std::vector<torch::Tensor> parameters_;
  AdamW optimizer_;
  Ranks& ranks_ = Ranks::Here();
  GradientSum gradients_;
  std::optional<WriteLock> lock_;  // Of rank 0, which writes.
  RunFolder folder_;
  RunReport report_;
  Json data_;                         // Fingerprints.
  std::vector<std::string> changes_;  // Of all resumes so far.
  DataState state_;                   // After the last finished step.
  NamedValues latest_;                // Of the last batch.
  uint64_t own_units_ = 0;
  uint64_t units_ = 0;  // Of all ranks; since the last log as if they had the same.
  std::optional<io::MetricsLog> metrics_;
  std::optional<io::MetricsLog> timing_;
  std::optional<io::LogPipe> pipe_;
  std::optional<io::TensorBoardWriter> board_;
  const Clock::time_point start_ = Clock::now();
  double seconds_before_ = 0;
  double learning_rate_ = 0;
  double gradient_norm_ = 0;
  std::optional<double> best_;
  bool validation_owed_ = false;
  int64_t validated_step_ = -1;
  int64_t saved_step_ = -1;
  int64_t skipped_in_a_row_ = 0;
  std::optional<Progress> progress_;
};

}  // namespace

Trainee::Trainee(const LoopOptions& options) : device_(DeviceOf(options.device)) {
  Ranks::Here();  // Joins the others before data are read.
  WarnIfNotUsed(options, device_);
}

int64_t PlannedSteps(const TraineeFacts& facts, const LoopOptions& options) {
  const double batches = facts.batches_per_epoch * static_cast<double>(options.num_epochs);
  return static_cast<int64_t>(
      std::ceil(batches / static_cast<double>(options.gradient_accumulation_steps)));
}

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

static RunReport TrainHere(Trainee& trainee, const RunOptions& options) {
  const LoopOptions& loop = options.loop;
  trainee.module().to(trainee.device());
  Run run(trainee, options);
  trainee.module().train();
  while (run.Continues() && run.Accumulate()) {
    run.Update();
    if (run.IsDue(loop.log_every_n_steps)) run.Log();
    const bool best = run.ValidationIsDue() && run.Validate(Run::Validation::kScheduled);
    if (best || run.IsDue(loop.save_every_n_steps)) run.Save(best);
  }
  return run.Finish();
}

RunReport Train(Trainee& trainee, const RunOptions& options) {
  try {
    RunReport report = TrainHere(trainee, options);
    Ranks::Here().Done();
    return report;
  } catch (const std::exception& error) {
    Ranks::Here().Fail(error.what());
    throw;
  }
}

}  // namespace kibitz::learn
