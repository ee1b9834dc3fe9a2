// What commands that run a network or a player share: its flags, and Ctrl-C as a stop.
//
//   Fields fields = ModelFields(options.network);
//   const auto player = decoder::Player::Load(options.network);
//   const StopOnInterrupt interrupt;
//   player->Think(board, {.stop = interrupt.token()});
#pragma once

#include <initializer_list>
#include <stop_token>
#include <string>
#include <thread>

#include "base/options.h"
#include "nn/kernels/network_options.h"

namespace kibitz::cli {

// --model and the other options of a network.
struct ModelRules {
  bool required = true;
};
Fields ModelFields(nn::NetworkOptions& options, const ModelRules& rules = {});

// The player that one of these options names; with none, the best model that ships. Throws
// Error::Usage when several do.
std::string ChosenPlayer(std::initializer_list<std::string> names);

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
