// The network a command plays with: which file, how it is computed. Every command that plays takes
// it this way.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/options.h"
#include "students/decoder/play/player.h"

namespace kibitz::cli {

struct PlayerInput {
  std::string model = {};
  nn::Precision precision = nn::Precision::kF32;
  int threads = 0;
  std::optional<int64_t> num_heads = {};
  bool model_required = true;  // Set by the command, not by the user.
};

Fields FieldsOf(PlayerInput& input);

// Throws Error.
std::unique_ptr<decoder::Player> LoadPlayer(const PlayerInput& input);

// While it lives, Ctrl-C requests a stop.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace kibitz::cli
