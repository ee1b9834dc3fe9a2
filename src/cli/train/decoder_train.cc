#include <fmt/format.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/skip_counter.h"
#include "base/text.h"
#include "cli/train/run_training.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"
#include "students/decoder/net/trainee.h"

namespace kibitz::cli {
namespace {

using decoder::TrainOptions;

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

// Rows that were skipped, by source and reason.
SkipCounter SkippedRows(const decoder::DecoderTrainee& trainee) {
  SkipCounter skipped;
  for (const decoder::Source* source : {trainee.games(), trainee.searches()}) {
    if (source == nullptr) continue;
    for (const auto& [reason, entry] : source->skipped().entries()) {
      skipped.Add(source->name() + ": " + reason, entry.first, entry.count);
    }
  }
  return skipped;
}

int Train(const TrainOptions& given, const Context& context) {
  const TrainOptions options = Completed(given);
  learn::SetThreads(options.training.threads);
  WarnIfTooLarge(options);
  decoder::DecoderTrainee trainee(options);
  Announce(options, trainee);
  const learn::RunReport report = Trained(trainee, options);
  const SkipCounter skipped = SkippedRows(trainee);
  if (!context.json && !skipped.empty()) fmt::print("skipped: {}\n", skipped.Text());
  return PrintReport(report, context, {{"skipped", skipped.ToJson()}});
}

}  // namespace

int Run(const decoder::PretrainOptions& options, const Context& context) {
  return Train(options, context);
}
int Run(const decoder::FinetuneOptions& options, const Context& context) {
  return Train(options, context);
}

}  // namespace kibitz::cli
