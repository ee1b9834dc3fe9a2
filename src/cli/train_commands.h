// The commands that need libtorch. kibitz lists them and runs kibitz-train for them; kibitz-train
// runs them. A new one is declared here (options, text, Run) and defined in cli/train/NAME.cc.
//
//   std::vector<Command> commands = TrainCommandsHere();
#pragma once

#include <vector>

#include "cli/command.h"
#include "students/decoder/data/train_options.h"
#include "students/policy/data/train_options.h"
#include "students/twenty48/data/train_options.h"

namespace kibitz::cli {

struct TrainCheckOptions {
  int threads = 0;
};
Fields FieldsOf(TrainCheckOptions& options);

// Defined in cli/train, which only kibitz-train has.
int Run(const decoder::PretrainOptions& options, const Context& context);
int Run(const decoder::FinetuneOptions& options, const Context& context);
int Run(const policy::TrainOptions& options, const Context& context);
int Run(const twenty48::TrainOptions& options, const Context& context);
int Run(const TrainCheckOptions& options, const Context& context);

CommandText TextOf(const decoder::PretrainOptions&);
CommandText TextOf(const decoder::FinetuneOptions&);
CommandText TextOf(const policy::TrainOptions&);
CommandText TextOf(const twenty48::TrainOptions&);
CommandText TextOf(const TrainCheckOptions&);

// All of them, each made by `make.template operator()<Options>(text)`.
template <typename Make>
std::vector<Command> EachTrainCommand(Make make) {
  const auto one = [&]<typename Options>(const Options& options) {
    return make.template operator()<Options>(TextOf(options));
  };
  return {one(decoder::PretrainOptions()), one(decoder::FinetuneOptions()),
          one(policy::TrainOptions()), one(twenty48::TrainOptions()), one(TrainCheckOptions())};
}

// For kibitz: run by kibitz-train.
std::vector<Command> TrainCommandsBySibling();
// For kibitz-train: run in this process.
std::vector<Command> TrainCommandsHere();

}  // namespace kibitz::cli
