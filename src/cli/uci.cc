#include "uci/engine.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/player_input.h"
#include "uci/line_input.h"

namespace kibitz::cli {
namespace {

// The whole line at once, past any buffer; false when nobody listens.
bool WriteLine(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) written += static_cast<size_t>(count);
  }
  return true;
}

struct UciOptions {
  uci::EngineOptions engine;
};

Fields FieldsOf(UciOptions& options) {
  // The chess program may name the model later.
  Fields fields = ModelFields(options.engine.network, {.required = false});
  fields.AddAll(FieldsOf(options.engine));
  return fields;
}

int Run(const UciOptions& options, const Context&) {
  std::signal(SIGPIPE, SIG_IGN);  // A chess program that has gone is noticed by the write.
  uci::LineInput input(STDIN_FILENO, STDOUT_FILENO);
  uci::Engine engine(options.engine, uci::LoadDecoder, WriteLine);
  while (auto line = input.Next()) {
    if (!engine.Handle(*line)) break;
  }
  const int code = Interrupted() ? kExitInterrupted : 0;
  // A search ends within the time of a layer. A network that is being loaded, or a chess program
  // that does not read, is not waited for; nothing of ours is lost.
  if (!engine.Finish(std::chrono::milliseconds(200))) std::_Exit(code);
  return code;
}

}  // namespace

Command Uci() {
  return MakeCommand<UciOptions>(
      {.name = "uci",
       .group = "Decoder",
       .summary = "run a decoder as a UCI engine",
       .details = "In a chess GUI (Arena, Cute Chess, En Croissant, BanksiaGUI, Nibbler ...) add a "
                  "UCI engine\n"
                  "with this command line, or without --model and with the UCI option Model. The "
                  "GUI can change\n"
                  "all options below, and MultiPV, UCI_ShowWDL, Ponder and Move Overhead. On a "
                  "terminal, 'help'\n"
                  "lists the commands.",
       .example =
           "kibitz uci --model model.pt\n"
           "  cutechess-cli -engine cmd=kibitz arg=uci arg=--model arg=model.pt proto=uci \\\n"
           "      -engine cmd=stockfish proto=uci option.UCI_LimitStrength=true -each tc=60+1",
       .json = false},
      Run);
}

}  // namespace kibitz::cli
