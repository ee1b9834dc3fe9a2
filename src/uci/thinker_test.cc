#include "uci/thinker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/random.h"
#include "students/decoder/play/player.h"
#include "tests/support/test_data.h"

namespace kibitz::uci {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(ThinkerTest, SaysWhatCannotBeLoaded) {
  EXPECT_THAT(testing::MessageOf([] { LoadDecoder({}); }), HasSubstr("there is no model"));
  EXPECT_THAT(testing::MessageOf([] { LoadDecoder({.path = "/no/model.pt"}); }),
              HasSubstr("/no/model.pt"));
}

// Cut off at any moment, a prediction has what was found until then: the move is worth having also
// when its value was not read any more.
TEST(ThinkerTest, CutPredictionsKeepTheMove) {
  const auto thinker = ThinkerOf(decoder::Player::Random(
      {.embed_dim = 256, .num_heads = 4, .num_layers = 4}, 1, {.threads = 1}));
  const chess::Board board;
  const auto start = Clock::now();
  const auto whole = thinker->Predict(board, {.value = true});
  const auto takes = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  ASSERT_FALSE(whole.cancelled);
  Rng rng({.seed = 1, .epoch = 0, .sample = 0, .purpose = Purpose("cut")});
  int cut = 0;
  for (int i = 0; i < 100; ++i) {
    std::stop_source stop;
    const auto wait = std::chrono::microseconds(rng.Below(static_cast<uint64_t>(takes.count())));
    std::jthread stopper([&] {
      std::this_thread::sleep_for(wait);
      stop.request_stop();
    });
    const auto found = thinker->Predict(board, {.value = true, .stop = stop.get_token()});
    stopper.join();
    cut += found.cancelled ? 1 : 0;
    EXPECT_EQ(found.cancelled, !found.value);
    EXPECT_EQ(found.chosen.has_value(), !found.candidates.empty());
    if (found.chosen) {
      EXPECT_EQ(found.chosen->move, whole.chosen->move);
    }
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace kibitz::uci
