// What all training commands share: the run itself and the report of what it did.
//
//   int Run(const policy::TrainOptions& options, const Context& context) {
//     policy::PolicyTrainee trainee(options);
//     return RunTraining(trainee, trainee.options(), context);
//   }
#pragma once

#include "cli/command.h"
#include "learn/loop.h"

namespace kibitz::cli {

// Prints the report, as JSON where the context asks for it, with the figures of `more` before the
// folder. Returns the command's exit code.
int PrintReport(const learn::RunReport& report, const Context& context,
                const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

// Trains with the options of a student and saves them with every checkpoint.
template <typename Options>
learn::RunReport Trained(learn::Trainee& trainee, Options options) {
  return learn::Train(trainee, {.loop = options.training,
                                .config = FieldsOf(options).ToTree(),
                                .name = options.run_name,
                                .fresh = options.fresh,
                                .strict = options.strict});
}
template <typename Options>
int RunTraining(learn::Trainee& trainee, const Options& options, const Context& context) {
  return PrintReport(Trained(trainee, options), context);
}

}  // namespace kibitz::cli
