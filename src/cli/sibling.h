// Commands that need libtorch run in kibitz-train, the program beside this one, so that kibitz
// itself starts in milliseconds. Their options are declared once and known to both.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "cli/command.h"

namespace kibitz::cli {

// Replaces this process by kibitz-train with the command's name and words. Throws Error with the
// remedy when it is not there.
[[noreturn]] void RunSibling(const std::string& name, std::span<const std::string> words);

template <typename Options>
Command RunBySibling(CommandText text) {
  // Options are read here too, so that wrong usage is told without starting torch.
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
