#include "base/log.h"
#include "base/text.h"
#include "cli/train/run_training.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"
#include "students/policy/net/trainee.h"

namespace kibitz::cli {

int Run(const policy::TrainOptions& options, const Context& context) {
  learn::SetThreads(options.training.threads);
  policy::PolicyTrainee trainee(Completed(options));
  LogInfo("{} parameters; {} positions for training, {} for validation, {} of them deep",
          HumanCount(static_cast<double>(CountParameters(trainee.options().model))),
          HumanCount(static_cast<double>(trainee.samples().train.size())),
          HumanCount(static_cast<double>(trainee.samples().eval.size())),
          HumanCount(static_cast<double>(trainee.samples().deep_eval.size())));
  return RunTraining(trainee, trainee.options(), context);
}

}  // namespace kibitz::cli
