#include "cli/policy_train.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/train/run_report.h"
#include "cli/train/train_commands.h"
#include "learn/loop.h"
#include "learn/runtime.h"
#include "students/policy/net/trainee.h"

namespace kibitz::cli {
namespace {

int Train(const policy::TrainOptions& given, const Context& context) {
  learn::SetThreads(given.training.threads);
  policy::PolicyTrainee trainee(given);
  policy::TrainOptions options = trainee.options();
  LogInfo("{} parameters; {} positions to learn from, {} to evaluate on, {} of them deep",
          HumanCount(static_cast<double>(CountParameters(options.model))),
          HumanCount(static_cast<double>(trainee.samples().train.size())),
          HumanCount(static_cast<double>(trainee.samples().eval.size())),
          HumanCount(static_cast<double>(trainee.samples().deep_eval.size())));
  const learn::RunReport report = learn::Train(trainee, {.loop = options.training,
                                                         .config = FieldsOf(options).ToTree(),
                                                         .name = options.run_name,
                                                         .planned_steps = trainee.PlannedSteps(),
                                                         .fresh = options.fresh});
  return TellReport(report, "samples", context);
}

}  // namespace

Command PolicyTrainHere() { return MakeCommand<policy::TrainOptions>(PolicyTrainText(), Train); }

}  // namespace kibitz::cli
