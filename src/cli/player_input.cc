#include "cli/player_input.h"

#include <chrono>

#include "base/interrupt.h"

namespace kibitz::cli {

Fields FieldsOf(PlayerInput& input) {
  Fields fields;
  fields.Add("model", input.model, "checkpoint, .pt or .safetensors",
             {.required = input.model_required, .metavar = "FILE"});
  fields.AddChoice("precision", input.precision, "precision of weights and matrix products",
                   {{"f32", nn::Precision::kF32}, {"int8", nn::Precision::kInt8}});
  fields.Add("threads", input.threads, "threads; 0: one for each core", {.min = 0, .max = 1024});
  fields.Add("num_heads", input.num_heads,
             "attention heads, for a file of bare weights that does not tell",
             {.min = 1, .max = 1024});
  return fields;
}

std::unique_ptr<decoder::Player> LoadPlayer(const PlayerInput& input) {
  decoder::PlayerOptions options = {.precision = input.precision, .threads = input.threads};
  if (input.num_heads) options.num_heads = static_cast<int>(*input.num_heads);
  return decoder::Player::Load(input.model, options);
}

StopOnInterrupt::StopOnInterrupt()
    : watcher_([this](const std::stop_token& end) {
        while (!end.stop_requested() && !source_.stop_requested()) {
          if (Interrupted()) source_.request_stop();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }) {}

}  // namespace kibitz::cli
