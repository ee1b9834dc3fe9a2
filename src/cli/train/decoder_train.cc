#include "cli/decoder_train.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/train/train_commands.h"
#include "learn/loop.h"
#include "learn/runtime.h"
#include "students/decoder/net/trainee.h"

namespace kibitz::cli {
namespace {

using decoder::TrainOptions;
using Json = nlohmann::ordered_json;

double Gigabytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void WarnIfTooLarge(const TrainOptions& options) {
  const uint64_t needed = decoder::EstimateMemory(options);
  const uint64_t available = AvailableMemory();
  if (available == 0 || needed <= available) return;
  LogWarn(
      "this run may take {:.1f} GB and {:.1f} GB are free: lower data.batch_size and raise "
      "training.gradient_accumulation_steps by as much, or set training.gradient_checkpointing",
      Gigabytes(needed), Gigabytes(available));
}

void Announce(const TrainOptions& options, const decoder::DecoderTrainee& trainee) {
  const auto count = [](const decoder::Source* source, std::string_view name) {
    return source == nullptr
               ? std::string()
               : fmt::format(", {} {}", HumanCount(static_cast<double>(source->size())), name);
  };
  LogInfo("{} parameters{}{}; about {:.1f} GB at most",
          HumanCount(static_cast<double>(decoder::CountParameters(options.model))),
          count(trainee.games(), "games"), count(trainee.searches(), "searches"),
          Gigabytes(decoder::EstimateMemory(options)));
}

Json ToJson(const learn::NamedValues& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

void PrintValues(std::string_view title, const learn::NamedValues& values) {
  if (values.empty()) return;
  fmt::print("{}\n", title);
  for (const auto& [name, value] : values) fmt::print("  {:30}{:.6g}\n", name, value);
}

void PrintReport(const learn::RunReport& report, const decoder::DecoderTrainee& trainee,
                 const Context& context) {
  Json skipped = Json::object();
  for (const decoder::Source* source : {trainee.games(), trainee.searches()}) {
    if (source == nullptr) continue;
    for (const auto& [reason, tally] : source->problems().tallies()) {
      skipped[source->name() + ": " + reason] = tally.count;
    }
  }
  const double peak = Gigabytes(PeakMemory());
  if (context.json) {
    PrintJson({{"stopped", NameOf(report.why)},
               {"resumed", report.resumed},
               {"steps", report.steps},
               {"steps_here", report.steps_here},
               {"epoch", report.epoch},
               {"seconds", report.seconds},
               {"seconds_here", report.seconds_here},
               {"tokens_per_second", report.units_per_second},
               {"skipped_updates", report.skipped_updates},
               {"peak_memory_gb", peak},
               {"metrics", ToJson(report.last_metrics)},
               {"validation", ToJson(report.last_validation)},
               {"skipped_rows", skipped},
               {"folder", report.folder},
               {"checkpoint", report.checkpoint}});
    return;
  }
  PrintValues("last metrics", report.last_metrics);
  PrintValues("last validation", report.last_validation);
  for (const auto& [reason, count] : skipped.items()) {
    fmt::print("rows with something wrong: {} ({})\n", count.get<uint64_t>(), reason);
  }
  fmt::print("{}: step {} (epoch {}), {} here, {} in all, {} tokens/s, {:.1f} GB at most\n",
             NameOf(report.why), report.steps, report.epoch, HumanSeconds(report.seconds_here),
             HumanSeconds(report.seconds), HumanCount(report.units_per_second), peak);
  fmt::print("checkpoint {}\n", report.checkpoint);
}

int Train(TrainOptions options, const Context& context) {
  decoder::CheckOptions(options);
  learn::SetThreads(options.training.threads);
  WarnIfTooLarge(options);
  decoder::DecoderTrainee trainee(options);
  Announce(options, trainee);
  const Json config = FieldsOf(options).ToTree();
  const learn::RunReport report = learn::Train(trainee, {.settings = options.training,
                                                         .config = config,
                                                         .name = options.run_name,
                                                         .planned_steps = trainee.PlannedSteps(),
                                                         .fresh = options.fresh});
  PrintReport(report, trainee, context);
  return report.why == learn::Stopped::kInterrupted ? kExitInterrupted : 0;
}

int Pretrain(const decoder::PretrainOptions& options, const Context& context) {
  return Train(options, context);
}
int Finetune(const decoder::FinetuneOptions& options, const Context& context) {
  return Train(options, context);
}

}  // namespace

Command DecoderPretrainHere() {
  return MakeCommand<decoder::PretrainOptions>(DecoderPretrainText(), Pretrain);
}
Command DecoderFinetuneHere() {
  return MakeCommand<decoder::FinetuneOptions>(DecoderFinetuneText(), Finetune);
}

}  // namespace kibitz::cli
