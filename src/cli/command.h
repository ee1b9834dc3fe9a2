// A command of the program. Each lives in a file of its own: an options struct with its Fields, a
// function that runs, and one function that returns the Command; commands.cc lists them all.
// Input files and folders are positional words; outputs follow --out.
//
//   Command ChessPerft() {
//     return MakeCommand<PerftOptions>({.name = "chess perft", ...}, Run);
//   }
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace kibitz::cli {

// A command returns it after a signal. The program's exit code is 128 + the signal, as shells
// expect: 130 for Ctrl-C, 143 for SIGTERM.
inline constexpr int kExitInterrupted = 130;

struct CommandText {
  std::string name;     // "chess perft"
  std::string group;    // Heading in the list of commands.
  std::string summary;  // One line.
  std::string details;  // Paragraphs for --help; may be empty.
  std::string example;  // A command line that runs in the repository's folder.
  bool json = true;     // Offers --json.
  bool config = false;  // Offers --config FILE.
};

// What every command knows besides its own options.
struct Context {
  bool json = false;
  bool color = false;  // stdout is a terminal with colours.
};

struct Command {
  CommandText text;
  std::function<std::string()> options_help;     // The lines of --help.
  std::function<std::string()> positional_help;  // For the usage line: " FILE ...".
  // Parses the words after the command's name and runs it. Returns the exit code.
  std::function<int(std::span<const std::string> words)> run;
};

namespace internal {
// Flags that all commands share, parsed together with the command's own.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::string config;
  std::vector<std::string> allow;
};
Fields CommonFields(CommonOptions& common, const CommandText& text);
// Applies the config, then flags, over the defaults; sets the log level.
Context Prepare(CommonOptions& common, Fields& fields, std::span<const std::string> words);
}  // namespace internal

template <typename Options>
Command MakeCommand(CommandText text, int (*run)(const Options&, const Context&)) {
  Command command;
  command.options_help = [text] {
    Options options;
    internal::CommonOptions common;
    return FieldsOf(options).Help() + internal::CommonFields(common, text).Help();
  };
  command.positional_help = [] {
    Options options;
    return FieldsOf(options).PositionalHelp();
  };
  command.run = [text, run](std::span<const std::string> words) {
    Options options;
    internal::CommonOptions common;
    Fields fields = FieldsOf(options);
    fields.AddAll(internal::CommonFields(common, text));
    const Context context = internal::Prepare(common, fields, words);
    // Training options keep which keys of a section were set.
    if constexpr (requires { NoteGiven(options, fields); }) NoteGiven(options, fields);
    return run(options, context);
  };
  command.text = std::move(text);
  return command;
}

// The whole text of "kibitz COMMAND --help".
std::string HelpOf(const Command& command);
// "kibitz --help".
std::string HelpOfAll(std::span<const Command> commands);

// Replaces this process with the program's code for this processor (base/processor.h), where that
// is installed. Else returns 0, or prints why not and returns the exit code.
int RunBestProgram(const std::string& program, char** argv);

// Finds the command named by the first words, runs it, prints errors, and returns the exit code:
// 0 done, 1 failed, 2 wrong usage, 128 + the signal that interrupted it.
int RunProgram(std::string_view program, std::span<const Command> commands,
               std::span<const std::string> words);

}  // namespace kibitz::cli
