#include "cli/player_input.h"

#include <chrono>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "players/make_player.h"

namespace kibitz::cli {

Fields ModelFields(nn::NetworkOptions& options, const ModelRules& rules) {
  Fields fields;
  fields.Add("model", options.path, "checkpoint, .pt or .safetensors, or a model folder",
             {.required = rules.required, .metavar = "PATH"});
  fields.AddAll(FieldsOf(options));
  return fields;
}

std::string ChosenPlayer(std::initializer_list<std::string> names) {
  std::string chosen;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    if (!chosen.empty()) {
      throw Error::Usage("found two players, {} and {}; name one", Quoted(chosen), Quoted(name));
    }
    chosen = name;
  }
  return chosen.empty() ? players::DefaultPlayer() : chosen;
}

StopOnInterrupt::StopOnInterrupt()
    : watcher_([this](const std::stop_token& end) {
        while (!end.stop_requested() && !source_.stop_requested()) {
          if (Interrupted()) source_.request_stop();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }) {}

}  // namespace kibitz::cli
