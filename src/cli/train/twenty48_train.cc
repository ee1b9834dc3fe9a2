#include "base/log.h"
#include "base/text.h"
#include "cli/train/run_training.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"
#include "students/twenty48/net/trainee.h"

namespace kibitz::cli {

int Run(const twenty48::TrainOptions& given, const Context& context) {
  const twenty48::TrainOptions options = Completed(given);
  learn::SetThreads(options.training.threads);
  twenty48::Twenty48Trainee trainee(options);
  LogInfo("{} parameters; {} rows for training, {} for validation",
          HumanCount(static_cast<double>(CountParameters(options.model))),
          HumanCount(static_cast<double>(trainee.rows().train.size())),
          HumanCount(static_cast<double>(trainee.rows().validation.size())));
  return RunTraining(trainee, options, context);
}

}  // namespace kibitz::cli
