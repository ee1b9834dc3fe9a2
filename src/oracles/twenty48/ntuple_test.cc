#include "oracles/twenty48/ntuple.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "oracles/twenty48/ntuple_learning.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;
using twenty48::Board;

TEST(NTuple, GathersNibblesAsThePlainWay) {
  Rng rng({.seed = 1});
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = rng.Next();
    const uint64_t mask = rng.Next();
    EXPECT_EQ(GatherBits(value, mask), GatherBitsPlain(value, mask));
  }
}

TEST(NTuple, AllEightViewsOfABoardAreWorthTheSame) {
  const std::vector<std::string> patterns = {"0125", "37b"};
  NTupleNetwork network(patterns);
  for (size_t t = 0; t < patterns.size(); ++t) {
    Rng rng({.seed = 2, .sample = t});
    for (float& weight : network.table(t)) weight = static_cast<float>(rng.Below(1000));
  }
  const uint64_t board = 0xcb9587630231012;
  for (uint64_t view : twenty48::Views(board)) {
    EXPECT_EQ(network.Value(view), network.Value(board));
  }
  EXPECT_NE(network.Value(board), network.Value(board + 1));
}

TEST(NTuple, RefusesBadPatterns) {
  const auto message = [](const std::string& text) {
    return MessageOf([&] { ParsePatterns(std::vector<std::string>{text}); });
  };
  EXPECT_THAT(message("01g"), HasSubstr("'g' is not a cell"));
  EXPECT_THAT(message("0110"), HasSubstr("different cells"));
  EXPECT_THAT(message("01234567"), HasSubstr("1 to 7"));
}

NTupleLearningOptions Small() { return {.patterns = {"0123", "4567", "0145"}, .seed = 3}; }

TEST(NTupleLearning, ScoresRise) {
  NTupleLearner learner(Small());
  const auto mean = [&](int games) {
    double sum = 0;
    for (int i = 0; i < games; ++i) sum += static_cast<double>(learner.LearnGame().score);
    return sum / games;
  };
  const double first = mean(100);
  mean(3000);
  EXPECT_GT(mean(100), 4 * first);
}

TEST(NTupleLearning, ResumesExactly) {
  const TempFolder folder;
  const std::string path = folder.File("tables.safetensors");
  NTupleLearner whole(Small());
  for (int i = 0; i < 60; ++i) whole.LearnGame();
  {
    NTupleLearner first(Small());
    for (int i = 0; i < 25; ++i) first.LearnGame();
    first.Save(path);
  }
  NTupleLearner second = NTupleLearner::Load(path);
  EXPECT_EQ(second.games(), 25);
  while (second.games() < 60) second.LearnGame();
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_TRUE(std::ranges::equal(second.network().table(t), whole.network().table(t)));
  }
}

TEST(NTupleLearning, ReplaysLongGamesFromTheirMiddle) {
  NTupleLearningOptions options = Small();
  options.restart_from = 0;
  NTupleLearner once(options);
  const int64_t moves = once.LearnGame().moves;
  EXPECT_EQ(once.moves(), moves);
  options.restart_from = moves;  // The first game is just long enough.
  NTupleLearner again(options);
  EXPECT_EQ(again.LearnGame().moves, moves);
  EXPECT_GT(again.moves(), moves);
  options.restart_from = moves + 1;
  NTupleLearner not_again(options);
  not_again.LearnGame();
  EXPECT_EQ(not_again.moves(), moves);
}

TEST(NTupleLearning, ResumesExactlyWithReplays) {
  const TempFolder folder;
  const std::string path = folder.File("tables.safetensors");
  NTupleLearningOptions options = Small();
  options.restart_from = 20;
  NTupleLearner whole(options);
  for (int i = 0; i < 30; ++i) whole.LearnGame();
  NTupleLearner first(options);
  for (int i = 0; i < 10; ++i) first.LearnGame();
  first.Save(path);
  NTupleLearner second = NTupleLearner::Load(path);
  while (second.games() < 30) second.LearnGame();
  EXPECT_TRUE(std::ranges::equal(second.network().table(0), whole.network().table(0)));
}

TEST(NTupleLearning, WeightsAlonePlayButDoNotResume) {
  const TempFolder folder;
  const std::string path = folder.File("weights.safetensors");
  NTupleLearner learner(Small());
  for (int i = 0; i < 5; ++i) learner.LearnGame();
  learner.Save(path, false);
  const NTupleNetwork network = NTupleNetwork::Load(path);
  EXPECT_EQ(network.Value(0x1230), learner.network().Value(0x1230));
  EXPECT_THAT(MessageOf([&] { NTupleLearner::Load(path); }), HasSubstr("without training state"));
}

}  // namespace
}  // namespace kibitz::oracles
