#include "uci/thinker.h"

#include "students/decoder/play/player.h"

namespace kibitz::uci {
namespace {

class DecoderThinker final : public Thinker {
 public:
  explicit DecoderThinker(std::unique_ptr<decoder::Player> player) : player_(std::move(player)) {}

  decoder::Prediction Predict(const chess::Board& board,
                              const decoder::PredictOptions& options) override {
    return player_->Predict(board, options);
  }
  decoder::Thought Think(const chess::Board& root, const decoder::ThinkOptions& options,
                         const decoder::ThoughtListener& listener) override {
    return player_->Think(root, options, listener);
  }

 private:
  std::unique_ptr<decoder::Player> player_;
};

}  // namespace

std::unique_ptr<Thinker> ThinkerOf(std::unique_ptr<decoder::Player> player) {
  return std::make_unique<DecoderThinker>(std::move(player));
}

std::unique_ptr<Thinker> LoadDecoder(const nn::NetworkOptions& options) {
  if (options.path.empty()) {
    throw Error("there is no model: give --model FILE or set the option Model");
  }
  return ThinkerOf(decoder::Player::Load(options));
}

}  // namespace kibitz::uci
