#include "cli/decoder_train.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/train/run_report.h"
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

void Tell(const learn::RunReport& report, const decoder::DecoderTrainee& trainee,
          const Context& context) {
  Json skipped = Json::object();
  for (const decoder::Source* source : {trainee.games(), trainee.searches()}) {
    if (source == nullptr) continue;
    for (const auto& [reason, tally] : source->problems().tallies()) {
      skipped[source->name() + ": " + reason] = tally.count;
    }
  }
  if (context.json) {
    PrintJson(ReportJson(report, "tokens", {{"skipped_rows", skipped}}));
    return;
  }
  for (const auto& [reason, count] : skipped.items()) {
    fmt::print("rows with something wrong: {} ({})\n", count.get<uint64_t>(), reason);
  }
  PrintReport(report, "tokens");
}

int Train(TrainOptions options, const Context& context) {
  decoder::CheckOptions(options);
  learn::SetThreads(options.training.threads);
  WarnIfTooLarge(options);
  decoder::DecoderTrainee trainee(options);
  Announce(options, trainee);
  const Json config = FieldsOf(options).ToTree();
  const learn::RunReport report = learn::Train(trainee, {.loop = options.training,
                                                         .config = config,
                                                         .name = options.run_name,
                                                         .planned_steps = trainee.PlannedSteps(),
                                                         .fresh = options.fresh});
  Tell(report, trainee, context);
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
