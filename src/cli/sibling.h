// Commands that need libtorch run in kibitz-train, the program beside kibitz, so that kibitz itself
// starts in milliseconds. Both programs share one declaration of their options.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "cli/command.h"

namespace kibitz::cli {

// Replaces this process with kibitz-train, given the command's name and words. Throws Error when
// kibitz-train is missing.
[[noreturn]] void RunSibling(const std::string& name, std::span<const std::string> words);

template <typename Options>
Command RunBySibling(CommandText text) {
  // Parses the options here too, so that wrong usage is reported without starting torch.
  Command command = MakeCommand<Options>(
      text, +[](const Options&, const Context&) { return 0; });
  command.run = [check = std::move(command.run),
                 name = text.name](std::span<const std::string> words) -> int {
    check(words);
    RunSibling(name, words);
  };
  return command;
}

}  // namespace kibitz::cli
