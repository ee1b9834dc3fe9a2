#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/commands.h"

namespace kibitz::cli {
namespace {

struct CompletionOptions {};
Fields FieldsOf(CompletionOptions&) { return {}; }

std::string FlagsOf(const Command& command) {
  std::string flags = "--help";
  for (std::string name : command.option_names()) {
    std::replace(name.begin(), name.end(), '_', '-');
    flags += " --" + name;
  }
  return flags;
}

// The words typed so far choose a case; its words are offered. Files complete everywhere else.
int Run(const CompletionOptions&, const Context&) {
  fmt::print("_kibitz() {{\n");
  fmt::print("  local line=\"${{COMP_WORDS[*]:1:COMP_CWORD-1}}\" words=\"\"\n");
  fmt::print("  case \"$line \" in\n");
  std::string top;
  for (const Command& command : AllCommands()) {
    fmt::print("    \"{} \"*) words=\"{}\" ;;\n", command.text.name, FlagsOf(command));
    const std::string first = command.text.name.substr(0, command.text.name.find(' '));
    if ((" " + top + " ").find(" " + first + " ") == std::string::npos) {
      top += (top.empty() ? "" : " ") + first;
    }
  }
  for (size_t at = 0; at < top.size();) {
    const size_t end = std::min(top.find(' ', at), top.size());
    const std::string first = top.substr(at, end - at);
    std::string seconds;
    for (const Command& command : AllCommands()) {
      if (command.text.name.starts_with(first + " ")) {
        seconds += " " + command.text.name.substr(first.size() + 1);
      }
    }
    if (!seconds.empty()) fmt::print("    \"{} \") words=\"{}\" ;;\n", first, seconds.substr(1));
    at = end + 1;
  }
  fmt::print("    \" \") words=\"{}\" ;;\n  esac\n", top);
  fmt::print("  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n");
  fmt::print("complete -o default -F _kibitz kibitz\n");
  return 0;
}

}  // namespace

Command Completion() {
  return MakeCommand<CompletionOptions>(
      {.name = "completion",
       .group = "General",
       .summary = "a bash script that completes commands and flags",
       .details = "",
       .example = "source <(kibitz completion)",
       .json = false},
      Run);
}

}  // namespace kibitz::cli
