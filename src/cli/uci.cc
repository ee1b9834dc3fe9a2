#include "uci/engine.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/player_input.h"
#include "players/make_player.h"
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
  std::string name;
  std::string player;
  std::string model;
};

Fields FieldsOf(UciOptions& options) {
  Fields fields;
  fields.Add("name", options.name, "who plays; default: the best model that ships",
             {.positional = true, .metavar = "PLAYER"});
  fields.Add("player", options.player, "the same as a flag", {.metavar = "PLAYER"});
  fields.Add("model", options.model, "the same, as other engines call it", {.metavar = "PATH"});
  return fields;
}

// Makes players one after the other; networks are loaded once.
class PlayerStore {
 public:
  std::unique_ptr<players::Player> Make(const players::PlayerName& name) {
    if (maker_ == nullptr || name.kind != name_.kind || name.path != name_.path) {
      maker_ = players::MakerFor(name);
      name_ = name;
    }
    Fields fields = maker_->fields();
    for (const auto& [key, value] : name.options) {
      const std::string reason = fields.Set(key, value);
      if (!reason.empty()) throw Error("{}", reason);
    }
    return maker_->Make();
  }

 private:
  std::unique_ptr<players::PlayerMaker> maker_;
  players::PlayerName name_;
};

int Run(const UciOptions& options, const Context&) {
  std::signal(SIGPIPE, SIG_IGN);  // A chess program that has gone is noticed by the write.
  const std::string name = ChosenPlayer({options.name, options.player, options.model});
  PlayerStore store;
  uci::LineInput input(STDIN_FILENO, STDOUT_FILENO);
  uci::Engine engine(
      {.player = players::ParsePlayerName(name).OrThrow("player")},
      [&](const players::PlayerName& wanted) { return store.Make(wanted); }, WriteLine);
  // A player that cannot be used must not pass for one that plays badly.
  engine.Load([](const std::string& message) {
    std::fputs(("kibitz uci: " + message + "\n").c_str(), stderr);
    std::_Exit(1);
  });
  while (auto line = input.Next()) {
    if (!engine.Handle(*line)) break;
  }
  const int code = Interrupted() ? kExitInterrupted : 0;
  // A search ends within the time of a layer. A network that is being loaded, or a chess program
  // that does not read, is not waited for; nothing of ours is lost.
  if (!engine.Finish(std::chrono::milliseconds(200)))
    std::_Exit(code == 0 ? 0 : 128 + InterruptSignal());
  return code;
}

}  // namespace

Command Uci() {
  return MakeCommand<UciOptions>(
      {.name = "uci",
       .group = "Play",
       .summary = "play as an engine in a chess program (UCI)",
       .details =
           "In the chess program (Arena, Cute Chess, En Croissant, BanksiaGUI, Nibbler ...) add "
           "an\n"
           "engine of the kind UCI with this command line. The player's own options, MultiPV,\n"
           "UCI_ShowWDL, VerboseMoveStats and the player itself (Model) can be set there too.\n"
           "By hand, 'help' shows what to type.\n\n" +
           players::PlayersHelp(),
       .example =
           "kibitz uci policy-small\n"
           "  cutechess-cli -engine cmd=kibitz arg=uci arg=policy-small proto=uci \\\n"
           "      -engine cmd=stockfish proto=uci option.UCI_LimitStrength=true -each tc=60+1",
       .json = false},
      Run);
}

}  // namespace kibitz::cli
