#include "cli/train_commands.h"

namespace kibitz::cli {

std::vector<Command> TrainCommandsHere() {
  return EachTrainCommand([]<typename Options>(const CommandText& text) {
    return MakeCommand<Options>(
        text,
        +[](const Options& options, const Context& context) { return Run(options, context); });
  });
}

}  // namespace kibitz::cli
