// The network behind the engine. An interface, so that tests can substitute one that cannot be
// loaded, is slow, fails, or writes illegal moves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "games/chess/board.h"
#include "nn/kernels/network_options.h"
#include "students/decoder/play/thought.h"

namespace kibitz::decoder {
class Player;
}

namespace kibitz::uci {

class Thinker {
 public:
  virtual ~Thinker() = default;

  virtual decoder::Prediction Predict(const chess::Board& board,
                                      const decoder::PredictOptions& options) = 0;
  virtual decoder::Thought Think(const chess::Board& root, const decoder::ThinkOptions& options,
                                 const decoder::ThoughtListener& listener) = 0;
};

using LoadThinker = std::function<std::unique_ptr<Thinker>(const nn::NetworkOptions&)>;

// A decoder that is loaded, and one from a checkpoint; the latter throws Error.
std::unique_ptr<Thinker> ThinkerOf(std::unique_ptr<decoder::Player> player);
std::unique_ptr<Thinker> LoadDecoder(const nn::NetworkOptions& options);

}  // namespace kibitz::uci
