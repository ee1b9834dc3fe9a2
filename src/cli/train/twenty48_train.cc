#include "cli/twenty48_train.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/train/run_report.h"
#include "cli/train/train_commands.h"
#include "learn/loop.h"
#include "learn/runtime.h"
#include "students/twenty48/net/trainee.h"

namespace kibitz::cli {
namespace {

int Train(const twenty48::TrainOptions& given, const Context& context) {
  twenty48::TrainOptions options = Completed(given);
  learn::SetThreads(options.training.threads);
  twenty48::Twenty48Trainee trainee(options);
  LogInfo("{} parameters; {} rows to learn from, {} to validate on",
          HumanCount(static_cast<double>(CountParameters(options.model))),
          HumanCount(static_cast<double>(trainee.rows().train.size())),
          HumanCount(static_cast<double>(trainee.rows().validation.size())));
  const learn::RunReport report = learn::Train(trainee, {.loop = options.training,
                                                         .config = FieldsOf(options).ToTree(),
                                                         .name = options.run_name,
                                                         .planned_steps = trainee.PlannedSteps(),
                                                         .fresh = options.fresh});
  return TellReport(report, "samples", context);
}

}  // namespace

Command Twenty48TrainHere() {
  return MakeCommand<twenty48::TrainOptions>(Twenty48TrainText(), Train);
}

}  // namespace kibitz::cli
