#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"

namespace kibitz::cli {
namespace {

enum class Shell { kBash, kZsh, kFish };

struct CompletionOptions {
  Shell shell = Shell::kBash;
};

Fields FieldsOf(CompletionOptions& options) {
  Fields fields;
  fields.AddChoice("shell", options.shell, "the shell to write a script for",
                   {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
                   {.positional = true});
  return fields;
}

// "chess" with "show", "moves", ...; a command of one word has no seconds.
struct First {
  std::string word;
  std::string help;
  std::vector<std::pair<std::string, std::string>> seconds;  // Word and summary.
};

std::vector<First> FirstsOf(const std::vector<Command>& commands) {
  std::vector<First> firsts;
  for (const Command& command : commands) {
    const std::string& name = command.text.name;
    const size_t blank = name.find(' ');
    const std::string word = name.substr(0, blank);
    auto found = std::find_if(firsts.begin(), firsts.end(),
                              [&](const First& first) { return first.word == word; });
    if (found == firsts.end()) {
      const bool alone = blank == std::string::npos;
      firsts.push_back({word, alone ? command.text.summary : command.text.group + " commands", {}});
      found = firsts.end() - 1;
    }
    if (blank != std::string::npos) {
      found->seconds.emplace_back(name.substr(blank + 1), command.text.summary);
    }
  }
  return firsts;
}

// A flag or a positional word.
struct Flag {
  std::string name;  // "--depth"; empty for a positional word.
  std::string help;
  std::string metavar;               // Empty: takes no value.
  std::vector<std::string> choices;  // All values there are; empty: any.
  bool repeats = false;
};

// Reads the lines of --help: "  --depth N      plies to count (default 5)". So completion offers
// what the help shows.
std::vector<Flag> FlagsOf(const Command& command) {
  std::vector<Flag> flags;
  const std::string text = command.options_help();
  for (std::string_view line : Split(text, '\n')) {
    if (line.size() < 3) continue;
    line.remove_prefix(2);
    if (line[0] == ' ' && !flags.empty()) {  // The help of a long flag is on the next line.
      flags.back().help = Trim(line);
      continue;
    }
    const size_t gap = std::min(line.find("  "), line.size());
    const std::string_view left = line.substr(0, gap);
    const bool named = left.starts_with("--");
    const size_t blank = std::min(left.find(' '), left.size());
    Flag& flag = flags.emplace_back();
    flag.name = named ? left.substr(0, blank) : "";
    flag.metavar = Trim(named ? left.substr(blank) : left);
    flag.help = Trim(line.substr(gap));
    if (flag.metavar.find('|') != std::string::npos) {
      for (std::string_view choice : Split(flag.metavar, '|')) flag.choices.emplace_back(choice);
    }
  }
  for (Flag& flag : flags) {
    flag.repeats = flag.help.find("may be repeated") != std::string::npos;
    // A description fits a line of a menu: the help up to its first semicolon or bracket.
    flag.help = Trim(flag.help.substr(0, std::min(flag.help.find(';'), flag.help.find(" ("))));
  }
  return flags;
}

bool TakesFile(const Flag& flag) {
  return flag.metavar == "FILE" || flag.metavar == "DIR" || flag.metavar == "PATH" ||
         flag.metavar == "CMD" || flag.metavar == "RUN";
}

std::string Replaced(std::string_view text, char from, std::string_view to) {
  std::string out;
  for (char c : text) out += c == from ? std::string(to) : std::string(1, c);
  return out;
}

// ---- bash

std::string BashFlags(const Command& command) {
  std::string flags = "--help";
  std::string valued;   // Flags whose value is free text or a file.
  std::string choices;  // Cases of flags with a list of values.
  std::string words;    // Choices of a positional word.
  bool files = false;
  for (const Flag& flag : FlagsOf(command)) {
    const std::string list = fmt::format("{}", fmt::join(flag.choices, " "));
    if (flag.name.empty()) {
      files = files || flag.choices.empty();
      words += list;
      continue;
    }
    flags += " " + flag.name;
    if (!flag.choices.empty()) {
      choices += fmt::format("        {}) words=\"{}\" ;;\n", flag.name, list);
    } else if (!flag.metavar.empty()) {
      valued += (valued.empty() ? "" : "|") + flag.name;
    }
  }
  if (!valued.empty()) choices += fmt::format("        {}) ;;\n", valued);
  // Where files may follow, flags are offered after a dash only.
  const std::string offer =
      files ? fmt::format("[[ $word == -* ]] && words=\"{}\"", flags)
            : fmt::format("words=\"{}{}\"", words.empty() ? "" : words + " ", flags);
  return fmt::format(
      "    \"{} \"*)\n      case \"$previous\" in\n{}        *) {} ;;\n"
      "      esac ;;\n",
      command.text.name, choices, offer);
}

void PrintBash(const std::vector<Command>& commands) {
  fmt::print(
      "_kibitz() {{\n"
      "  local line=\"${{COMP_WORDS[*]:1:COMP_CWORD-1}}\" words=\"\"\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  case \"$line \" in\n");
  for (const Command& command : commands) fmt::print("{}", BashFlags(command));
  std::string top;
  for (const First& first : FirstsOf(commands)) {
    top += (top.empty() ? "" : " ") + first.word;
    if (first.seconds.empty()) continue;
    std::string seconds;
    for (const auto& [word, help] : first.seconds) seconds += " " + word;
    fmt::print("    \"{} \") words=\"{}\" ;;\n", first.word, seconds.substr(1));
  }
  fmt::print(
      "    \" \") words=\"{}\" ;;\n  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}}\n"
      "complete -o default -F _kibitz kibitz\n",
      top);
}

// ---- zsh

std::string ZshQuoted(const std::string& text) { return "'" + Replaced(text, '\'', "'\\''") + "'"; }

// In _describe a colon ends the word; in _arguments brackets and colons have a meaning too.
std::string ZshWord(const std::string& word, const std::string& help) {
  return ZshQuoted(word + ":" + Replaced(help, ':', "\\:"));
}

std::string ZshArgument(const Flag& flag) {
  std::string help = Replaced(flag.help, '\\', "\\\\");
  for (const char* special : {":", "[", "]"}) {
    help = Replaced(help, *special, std::string("\\") + special);
  }
  std::string action;
  if (!flag.choices.empty()) {
    action = fmt::format("({})", fmt::join(flag.choices, " "));
  } else if (TakesFile(flag)) {
    action = "_files";
  }
  const std::string value = Replaced(flag.choices.empty() ? flag.metavar : "value", ':', "\\:");
  if (flag.name.empty()) {
    return ZshQuoted(fmt::format("{}:{}:{}", flag.repeats ? "*" : "", value, action));
  }
  const std::string spec = fmt::format("{}{}[{}]", flag.repeats ? "*" : "", flag.name, help);
  return ZshQuoted(flag.metavar.empty() ? spec : fmt::format("{}:{}:{}", spec, value, action));
}

void PrintZsh(const std::vector<Command>& commands) {
  fmt::print("#compdef kibitz\n_kibitz() {{\n  local -a names\n  if (( CURRENT == 2 )); then\n");
  fmt::print("    names=(\n");
  const std::vector<First> firsts = FirstsOf(commands);
  for (const First& first : firsts) fmt::print("      {}\n", ZshWord(first.word, first.help));
  fmt::print("    )\n    _describe command names\n    return\n  fi\n");
  fmt::print("  if (( CURRENT == 3 )); then\n    case \"$words[2]\" in\n");
  for (const First& first : firsts) {
    if (first.seconds.empty()) continue;
    fmt::print("      {})\n        names=(\n", first.word);
    for (const auto& [word, help] : first.seconds) {
      fmt::print("          {}\n", ZshWord(word, help));
    }
    fmt::print("        )\n        _describe command names\n        return ;;\n");
  }
  fmt::print("    esac\n  fi\n  case \"$words[2] $words[3] \" in\n");
  for (const Command& command : commands) {
    const std::string& name = command.text.name;
    const long count = 1 + std::count(name.begin(), name.end(), ' ');
    // _arguments takes the last word of the command's name for the command itself.
    fmt::print("    \"{} \"*)\n      shift {} words\n      (( CURRENT -= {} ))\n", name, count,
               count);
    fmt::print("      _arguments '--help[show the options and an example]'");
    for (const Flag& flag : FlagsOf(command)) fmt::print(" \\\n        {}", ZshArgument(flag));
    fmt::print(" ;;\n");
  }
  fmt::print(
      "  esac\n}}\n"
      "if [[ $funcstack[1] == _kibitz ]]; then _kibitz \"$@\"; else compdef _kibitz kibitz; fi\n");
}

// ---- fish

std::string FishQuoted(const std::string& text) {
  return "'" + Replaced(Replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

std::string FishArgument(const Flag& flag) {
  const std::string list = fmt::format("{}", fmt::join(flag.choices, " "));
  if (flag.name.empty()) return flag.choices.empty() ? "-F" : "-f -a " + FishQuoted(list);
  std::string text = "-l " + flag.name.substr(2);
  if (!flag.choices.empty()) {
    text += " -x -a " + FishQuoted(list);
  } else if (!flag.metavar.empty()) {
    text += TakesFile(flag) ? " -r -F" : " -x";
  }
  return text + " -d " + FishQuoted(flag.help);
}

void PrintFish(const std::vector<Command>& commands) {
  fmt::print(
      "function __kibitz_words_are\n  set -l given (commandline -opc)\n  set -e given[1]\n"
      "  test \"$given\" = \"$argv\"\nend\n"
      "function __kibitz_words_begin\n  set -l given (commandline -opc)\n  set -e given[1]\n"
      "  string match -q -- \"$argv *\" \"$given \"\nend\n"
      "complete -c kibitz -f\n");
  for (const First& first : FirstsOf(commands)) {
    fmt::print("complete -c kibitz -n __kibitz_words_are -a {} -d {}\n", first.word,
               FishQuoted(first.help));
    for (const auto& [word, help] : first.seconds) {
      fmt::print("complete -c kibitz -n '__kibitz_words_are {}' -a {} -d {}\n", first.word, word,
                 FishQuoted(help));
    }
  }
  for (const Command& command : commands) {
    const std::string condition = FishQuoted("__kibitz_words_begin " + command.text.name);
    fmt::print("complete -c kibitz -n {} -l help -d 'show the options and an example'\n",
               condition);
    for (const Flag& flag : FlagsOf(command)) {
      fmt::print("complete -c kibitz -n {} {}\n", condition, FishArgument(flag));
    }
  }
}

int Run(const CompletionOptions& options, const Context&) {
  const std::vector<Command> commands = AllCommands();
  switch (options.shell) {
    case Shell::kBash:
      PrintBash(commands);
      break;
    case Shell::kZsh:
      PrintZsh(commands);
      break;
    case Shell::kFish:
      PrintFish(commands);
      break;
  }
  return 0;
}

}  // namespace

Command Completion() {
  return MakeCommand<CompletionOptions>(
      {.name = "completion",
       .group = "General",
       .summary = "print a completion script for bash, zsh or fish",
       .details =
           "Install it once, then start a new shell:\n"
           "  bash  kibitz completion bash > ~/.local/share/bash-completion/completions/"
           "kibitz\n"
           "  zsh   kibitz completion zsh > ~/.zfunc/_kibitz, with 'fpath+=~/.zfunc' before\n"
           "        'autoload -Uz compinit && compinit' in ~/.zshrc\n"
           "  fish  kibitz completion fish > ~/.config/fish/completions/kibitz.fish\n"
           "Create the folder first if it is missing.",
       .example = "source <(kibitz completion bash)",
       .json = false},
      Run);
}

}  // namespace kibitz::cli
