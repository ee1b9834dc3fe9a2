// What commands that run a decoder share: the flags of its network, and Ctrl-C as a stop.
//
//   Fields fields = ModelFields(options.network);
//   const auto player = decoder::Player::Load(options.network);
//   const StopOnInterrupt interrupt;
//   player->Think(board, {.stop = interrupt.token()});
#pragma once

#include <stop_token>
#include <thread>

#include "base/options.h"
#include "nn/kernels/network_options.h"

namespace kibitz::cli {

// --model and the other options of a network.
struct ModelRules {
  bool required = true;
};
Fields ModelFields(nn::NetworkOptions& options, const ModelRules& rules = {});

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
