#include "oracles/twenty48/ntuple.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "oracles/twenty48/ntuple_learning.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;
using twenty48::Board;
using twenty48::Game;

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

TEST(NTuple, StagesFollowTheLargestTile) {
  Rng rng({.seed = 4});
  const std::vector<int> ranks = {5, 8, 13, 14, 15};
  for (int i = 0; i < 5000; ++i) {
    const uint64_t packed = rng.Next() & rng.Next() & rng.Next() & rng.Next();
    const int largest = Board::FromBits(packed).MaxRank();
    const auto reached = std::ranges::count_if(ranks, [&](int rank) { return largest >= rank; });
    EXPECT_EQ(StageOf(packed, ranks), static_cast<size_t>(reached)) << largest;
  }
  EXPECT_EQ(ParseStages(std::vector<std::string>{"8192", "16384"}), (std::vector<int>{13, 14}));
  for (const std::string text : {"8191", "2", "65536", "x"}) {
    EXPECT_THAT(MessageOf([&] { ParseStages(std::vector<std::string>{text}); }),
                HasSubstr("4 to 32768"));
  }
  EXPECT_THAT(MessageOf([] {
                ParseStages(std::vector<std::string>{"64", "64"});
              }),
              HasSubstr("larger tile"));
}

TEST(NTuple, AnEntryThatAStageNeverLearnedIsThatOfTheStageBefore) {
  const std::vector<std::string> patterns = {"01"};
  const std::vector<std::string> stages = {"16", "32"};
  NTupleNetwork network(patterns, stages);
  const uint64_t board = 0x5000000000000000;  // A tile of 32: the last stage.
  std::ranges::fill(network.table(0, 0), 1.0F);
  EXPECT_EQ(network.Value(board), 8);
  std::ranges::fill(network.table(0, 1), 2.0F);
  EXPECT_EQ(network.Value(board), 16);
  network.table(0, 2)[0] = 3.0F;  // Two empty cells: six of the eight views.
  EXPECT_EQ(network.Value(board), 6 * 3 + 2 * 2);
  EXPECT_EQ(network.Value(0x1000000000000000), 8);
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

// With a rate next to nothing all values stay near 0. So a target is the sum of the points to come,
// each smaller by the trace for each move, and the weights tell the sum of all targets.
TEST(NTupleLearning, ATraceReachesBackFromEachPoint) {
  NTupleLearningOptions options{.patterns = {"01"}, .seed = 3};
  options.learning_rate = 1e-7;
  options.restart_from = 0;
  const Game game = NTupleLearner(options).LearnGame();
  const auto targets = [&](double trace) {
    options.trace = trace;
    NTupleLearner learner(options);
    EXPECT_EQ(learner.LearnGame().score, game.score);
    const std::span<const float> weights = learner.network().table(0);
    return std::accumulate(weights.begin(), weights.end(), 0.0) / options.learning_rate;
  };
  const auto score = static_cast<double>(game.score);
  ASSERT_GT(score, 300);
  EXPECT_NEAR(targets(0), score, 20);  // But for the points of the first move.
  EXPECT_NEAR(targets(0.5), 2 * score, 60);
  EXPECT_GT(targets(1), 10 * score);
  EXPECT_LT(targets(1), static_cast<double>(game.moves) * score);
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

TEST(NTupleLearning, ResumesExactlyWithStages) {
  const TempFolder folder;
  const std::string path = folder.File("tables.safetensors");
  NTupleLearningOptions options = Small();
  options.stages = {"64", "128"};
  NTupleLearner whole(options);
  for (int i = 0; i < 60; ++i) whole.LearnGame();
  NTupleLearner first(options);
  for (int i = 0; i < 25; ++i) first.LearnGame();
  first.Save(path);
  NTupleLearner second = NTupleLearner::Load(path);
  while (second.games() < 60) second.LearnGame();
  for (size_t stage = 0; stage < 3; ++stage) {
    const std::span<const float> table = whole.network().table(0, stage);
    EXPECT_TRUE(std::ranges::equal(second.network().table(0, stage), table));
    EXPECT_GT(std::ranges::count_if(table, [](float weight) { return weight != 0; }), 100);
  }
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
