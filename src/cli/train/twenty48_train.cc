#include "base/log.h"
#include "base/text.h"
#include "cli/train/run_training.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"
#include "students/twenty48/net/trainee.h"

namespace kibitz::cli {
namespace {

// Of the network that is trained, with attention or without.
double CountParameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return static_cast<double>(count);
}

}  // namespace

int Run(const twenty48::TrainOptions& given, const Context& context) {
  const twenty48::TrainOptions options = Completed(given);
  learn::SetThreads(options.training.threads);
  twenty48::Twenty48Trainee trainee(options);
  LogInfo("{} parameters; {} rows for training, {} for validation",
          HumanCount(CountParameters(trainee.module())),
          HumanCount(static_cast<double>(trainee.rows().train.size())),
          HumanCount(static_cast<double>(trainee.rows().validation.size())));
  return RunTraining(trainee, options, context);
}

}  // namespace kibitz::cli
