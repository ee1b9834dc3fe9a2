#include "cli/player_input.h"

#include <chrono>

#include "base/interrupt.h"

namespace kibitz::cli {

Fields ModelFields(nn::NetworkOptions& options, const ModelRules& rules) {
  Fields fields;
  fields.Add("model", options.path, "checkpoint, .pt or .safetensors, or a model folder",
             {.required = rules.required, .metavar = "PATH"});
  fields.AddAll(FieldsOf(options));
  return fields;
}

StopOnInterrupt::StopOnInterrupt()
    : watcher_([this](const std::stop_token& end) {
        while (!end.stop_requested() && !source_.stop_requested()) {
          if (Interrupted()) source_.request_stop();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }) {}

}  // namespace kibitz::cli
