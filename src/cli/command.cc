#include "cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/interrupt.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/processor.h"
#include "base/standard_streams.h"
#include "base/text.h"

namespace kibitz::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

bool StdoutShowsColors() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         term != nullptr && std::string_view(term) != "dumb";
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

// Whether --help is among the words before "--".
bool AsksForHelp(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

struct Match {
  const Command* command = nullptr;
  size_t words = 0;  // How many words name it.
};

// The command with the longest name that the words begin with.
Match FindCommand(std::span<const Command> commands, std::span<const std::string> words) {
  Match best;
  for (const Command& command : commands) {
    const auto name = SplitWords(command.text.name);
    if (name.size() > words.size() || name.size() <= best.words) continue;
    if (std::equal(name.begin(), name.end(), words.begin())) best = {&command, name.size()};
  }
  return best;
}

// Commands whose name starts with these words, for "kibitz chess --help".
std::vector<Command> Below(std::span<const Command> commands, std::string_view words) {
  std::vector<Command> found;
  for (const Command& command : commands) {
    if (command.text.name.starts_with(std::string(words) + " ")) found.push_back(command);
  }
  return found;
}

std::string CommandList(std::span<const Command> commands) {
  std::string text;
  std::vector<std::string> groups;
  size_t width = 0;
  for (const Command& command : commands) {
    width = std::max(width, command.text.name.size());
    if (std::find(groups.begin(), groups.end(), command.text.group) == groups.end()) {
      groups.push_back(command.text.group);
    }
  }
  for (const std::string& group : groups) {
    text += "\n" + group + "\n";
    for (const Command& command : commands) {
      if (command.text.group != group) continue;
      text += fmt::format("  {:{}}  {}\n", command.text.name, width, command.text.summary);
    }
  }
  return text;
}

[[noreturn]] void ThrowUnknown(std::span<const Command> commands,
                               std::span<const std::string> words) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.text.name);
  std::string given = words[0];
  if (words.size() > 1 && !words[1].starts_with('-')) given += " " + words[1];
  const auto nearest = NearestName(given, names);
  throw Error::Usage("unknown command {}; {}", Quoted(given),
                     nearest ? fmt::format("did you mean '{}'?", *nearest)
                             : std::string("'kibitz --help' lists the commands"));
}

int Run(std::span<const Command> commands, std::span<const std::string> words) {
  if (words.empty() || IsHelp(words[0])) {
    const auto rest = words.empty() ? words : words.subspan(1);
    if (const Match match = FindCommand(commands, rest); match.command != nullptr) {
      fmt::print("{}", HelpOf(*match.command));
    } else {
      fmt::print("{}", HelpOfAll(commands));
    }
    return words.empty() ? kWrongUsage : kDone;
  }
  const Match match = FindCommand(commands, words);
  if (match.command == nullptr) {
    const auto below = Below(commands, words[0]);
    const bool bare = words.size() == 1;
    if (!below.empty() && (bare || AsksForHelp(words.subspan(1, 1)))) {
      fmt::print("usage: kibitz {} COMMAND [options]\n{}", words[0], CommandList(below));
      return bare ? kWrongUsage : kDone;
    }
    ThrowUnknown(commands, words);
  }
  const auto rest = words.subspan(match.words);
  if (AsksForHelp(rest)) {
    fmt::print("{}", HelpOf(*match.command));
    return kDone;
  }
  try {
    return match.command->run(rest);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kUsage) throw;
    throw Error::Usage("{}\ntry 'kibitz {} --help'", error.message(), match.command->text.name);
  }
}

}  // namespace

namespace internal {

Fields CommonFields(CommonOptions& common, const CommandText& text) {
  Fields fields;
  if (text.json) fields.Add("json", common.json, "print JSON, one object a line");
  if (text.config) {
    fields.Add("config", common.config, "read options from a .yaml, .toml or .json file",
               {.metavar = "FILE"});
  }
  fields.Add("allow", common.allow,
             "raise a limit on input: line, window, network, values, columns or game",
             {.metavar = "NAME=SIZE"});
  fields.Add("quiet", common.quiet, "print results and errors only: no progress, no log");
  fields.Add("verbose", common.verbose, "log more");
  return fields;
}

Context Prepare(CommonOptions& common, Fields& fields, std::span<const std::string> words) {
  fields.ParseFlags(words);
  if (!common.config.empty()) {
    fields.ReadConfig(common.config);
    fields.ParseFlags(words);  // Flags win over the file.
  }
  fields.CheckRequired();
  for (const std::string& text : common.allow) AllowInput(text);
  if (common.quiet) SetLogLevel(LogLevel::kSilent);
  if (common.verbose) SetLogLevel(LogLevel::kDebug);
  return {.json = common.json, .color = StdoutShowsColors() && !common.json};
}

}  // namespace internal

std::string HelpOf(const Command& command) {
  const CommandText& text = command.text;
  std::string help = fmt::format("usage: kibitz {}{} [options]\n\n{}\n", text.name,
                                 command.positional_help(), text.summary);
  if (!text.details.empty()) help += "\n" + text.details + "\n";
  help += "\noptions\n" + command.options_help();
  return help + "\nexample\n  " + text.example + "\n";
}

std::string HelpOfAll(std::span<const Command> commands) {
  return "kibitz distils game-tree search into small neural networks for chess and 2048.\n\n"
         "usage: kibitz COMMAND [options]\n" +
         CommandList(commands) +
         "\n'kibitz COMMAND --help' shows the options of a command and an example.\n"
         "'kibitz completion --help' shows how to install shell completion.\n";
}

namespace {

// The exit code of `run`; prints what it throws.
int RunCaught(std::string_view program, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    PrintToStderr(fmt::format("{}: {}\n", program, error.message()));
    switch (error.kind()) {
      case Error::Kind::kUsage:
        return kWrongUsage;
      case Error::Kind::kInterrupted:
        return kExitInterrupted;
      case Error::Kind::kFailed:
        return kFailed;
    }
  } catch (const std::filesystem::filesystem_error& error) {
    PrintToStderr(
        fmt::format("{}: cannot use {}: {}; check that it exists and that you may write there\n",
                    program, error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    // fmt::print throws it when standard output cannot be written; after a signal that is no fault.
    if (Interrupted()) return kExitInterrupted;
    PrintToStderr(
        fmt::format("{}: cannot write to standard output: {}\n", program, error.code().message()));
  } catch (const std::bad_alloc&) {
    PrintToStderr(fmt::format("{}: out of memory; use a smaller input or batch\n", program));
  } catch (const std::exception& error) {
    PrintToStderr(fmt::format("{}: unexpected: {}\n", program, error.what()));
  }
  return kFailed;
}

}  // namespace

int RunBestProgram(const std::string& program, char** argv) {
  return RunCaught(program, [&] {
    RunForThisProcessor(program, argv);
    return 0;
  });
}

int RunProgram(std::string_view program, std::span<const Command> commands,
               std::span<const std::string> words) {
  CatchInterrupts();
  const int code = RunCaught(program, [&] {
    const int done = Run(commands, words);
    // A full disk or a closed pipe must not look like success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      ThrowIfInterrupted();
      throw Error::System("cannot write to standard output");
    }
    return done;
  });
  return code != kExitInterrupted ? code : 128 + (Interrupted() ? InterruptSignal() : SIGINT);
}

}  // namespace kibitz::cli
