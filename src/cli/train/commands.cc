#include <utility>

#include "cli/train_commands.h"

namespace kibitz::cli {
namespace {

// As MakeCommand runs it; besides, the options learn which of them were given.
template <typename Options>
int ReadAndRun(const CommandText& text, std::span<const std::string> words) {
  Options options;
  internal::CommonOptions common;
  Fields fields = FieldsOf(options);
  fields.AddAll(internal::CommonFields(common, text));
  const Context context = internal::Prepare(common, fields, words);
  if constexpr (requires { NoteGiven(options, fields); }) NoteGiven(options, fields);
  return Run(options, context);
}

}  // namespace

std::vector<Command> TrainCommandsHere() {
  return EachTrainCommand([]<typename Options>(const CommandText& text) {
    Command command = MakeCommand<Options>(
        text,
        +[](const Options& options, const Context& context) { return Run(options, context); });
    command.run = [text](std::span<const std::string> words) {
      return ReadAndRun<Options>(text, words);
    };
    return command;
  });
}

}  // namespace kibitz::cli
