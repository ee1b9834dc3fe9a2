#include "students/decoder/data/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "students/decoder/data/train_options.h"
#include "tests/support/decoder_records.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

using kibitz::testing::GameRecord;
using kibitz::testing::SearchRecord;
using kibitz::testing::TempFolder;

// Two files of each kind, some rows of them bad.
class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t file : {1U, 2U}) {
      const std::string name = std::to_string(file) + ".parquet";
      int row = 0;
      kibitz::testing::WriteGames(folder_.File("g" + name),
                                  {.count = 90 * file, .seed = file, .max_plies = 50},
                                  [&](GameRecord& record) {
                                    if (record.game_id == "g7") record.fen = "?";
                                  });
      kibitz::testing::WriteSearches(folder_.File("v" + name), {.count = 40 * file, .seed = file},
                                     [&](SearchRecord& record) {
                                       if (row++ % 10 == 3) record.mcts_action = "?";
                                     });
    }
    games_ = OpenGames({folder_.File("g1.parquet"), folder_.File("g2.parquet")},
                       {.skip_board_prob = 0.1});
    searches_ = OpenSearches({folder_.File("v1.parquet"), folder_.File("v2.parquet")}, {});
  }

  std::vector<StreamBatch> Take(const StreamOptions& options, size_t count, uint64_t position = 0) {
    BatchStream stream(games_.get(), searches_.get(), options, position);
    std::vector<StreamBatch> batches;
    while (batches.size() < count) {
      auto next = stream.Next();
      if (!next) break;
      batches.push_back(*std::move(next));
    }
    return batches;
  }

  static void ExpectSame(const std::vector<StreamBatch>& a, const std::vector<StreamBatch>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].batch, b[i].batch) << "batch " << i;
      EXPECT_EQ(a[i].position, b[i].position);
      EXPECT_EQ(a[i].epoch, b[i].epoch);
    }
  }

  TempFolder folder_;
  std::unique_ptr<Source> games_;
  std::unique_ptr<Source> searches_;
  const StreamOptions options_ = {.seed = 5, .batch_size = 8, .variation_ratio = 0.3, .window = 60};
};

TEST_F(StreamTest, SameBatchesForAnyNumberOfThreads) {
  const auto expected = Take(options_, 150);
  for (int threads : {2, 5}) {
    StreamOptions options = options_;
    options.num_workers = threads;
    options.prefetch = 13;
    options.cache_mb = threads == 2 ? 0 : 1024;
    ExpectSame(Take(options, 150), expected);
  }
}

TEST_F(StreamTest, GoesOnFromAnyBatch) {
  const auto expected = Take(options_, 120);
  for (size_t done : {1U, 17U, 60U, 119U}) {
    const auto rest = Take(options_, 120 - done, expected[done - 1].position);
    ExpectSame(rest, {expected.begin() + static_cast<std::ptrdiff_t>(done), expected.end()});
  }
}

TEST_F(StreamTest, OtherSeedsAndEpochsGiveOtherBatches) {
  StreamOptions other = options_;
  other.seed = 6;
  EXPECT_NE(Take(options_, 1)[0].batch, Take(other, 1)[0].batch);
}

// All samples of the ranks together are the samples of one.
TEST_F(StreamTest, RanksShareTheSamples) {
  StreamOptions options = options_;
  options.batch_size = 1;
  options.epochs = 1;
  const auto contents = [](const std::vector<StreamBatch>& batches,
                           std::multiset<std::vector<int32_t>>& into) {
    for (const StreamBatch& batch : batches) into.insert(batch.batch.ids);
  };
  std::multiset<std::vector<int32_t>> expected;
  contents(Take(options, ~size_t{0}), expected);
  std::multiset<std::vector<int32_t>> shared;
  for (int rank = 0; rank < 3; ++rank) {
    options.rank = rank;
    options.ranks = 3;
    contents(Take(options, ~size_t{0}), shared);
  }
  EXPECT_EQ(shared, expected);
}

TEST_F(StreamTest, MixesByRatioAndCountsRestarts) {
  StreamOptions options = options_;
  options.epochs = 2;
  const auto batches = Take(options, ~size_t{0});
  double thinking = 0;
  double all = 0;
  for (const StreamBatch& batch : batches) {
    for (uint8_t flag : batch.batch.thinking) thinking += flag;
    all += batch.batch.sequences();
  }
  // 270 games (two of them bad) and 120 searches (a tenth bad) at 0.3: games last longer.
  EXPECT_NEAR(thinking / all, 0.3, 0.06);
  EXPECT_EQ(batches.back().epoch, 2);
  EXPECT_GE(all, 2 * 268.0);
  EXPECT_TRUE(std::is_sorted(batches.begin(), batches.end(), [](const auto& a, const auto& b) {
    return a.batch.variation_epoch < b.batch.variation_epoch;
  }));
  EXPECT_GE(batches.back().batch.variation_epoch, 1);
}

// Within an epoch every usable record comes once, in another order each time.
TEST_F(StreamTest, AnEpochShowsEveryRecordOnce) {
  using Root = std::vector<int32_t>;
  std::vector<Root> expected;
  for (size_t unit = 0; unit < searches_->unit_sizes().size(); ++unit) {
    const auto loaded = searches_->Load(unit);
    for (size_t i = 0; i < searches_->unit_sizes()[unit]; ++i) {
      if (!loaded->Usable(i)) continue;
      Rng rng({.seed = 1});
      const Sequence sample = loaded->Make(i, rng);
      expected.emplace_back(sample.ids.begin(), sample.ids.begin() + kBoardTokens);
    }
  }
  EXPECT_EQ(expected.size(), 108);  // 120 less a tenth.
  StreamOptions options = options_;
  options.variation_ratio = 1;
  options.batch_size = 1;
  options.epochs = 2;
  std::vector<Root> shown;
  for (const StreamBatch& batch : Take(options, ~size_t{0})) {
    shown.emplace_back(batch.batch.ids.begin(), batch.batch.ids.begin() + kBoardTokens);
  }
  ASSERT_EQ(shown.size(), 2 * expected.size());
  const auto half = shown.begin() + static_cast<std::ptrdiff_t>(expected.size());
  std::vector<Root> first(shown.begin(), half);
  std::vector<Root> second(half, shown.end());
  EXPECT_NE(first, second);
  EXPECT_NE(first, expected);
  for (auto* list : {&first, &second, &expected}) std::sort(list->begin(), list->end());
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
}

TEST_F(StreamTest, GamesAloneAndThoughtsAlone) {
  StreamOptions options = options_;
  options.variation_ratio = 0;
  BatchStream games(games_.get(), nullptr, options);
  EXPECT_EQ(games.Next()->batch.thinking, std::vector<uint8_t>(8, 0));
  options.variation_ratio = 1;
  BatchStream thoughts(nullptr, searches_.get(), options);
  EXPECT_EQ(thoughts.Next()->batch.thinking, std::vector<uint8_t>(8, 1));
  options.variation_ratio = 0.5;
  EXPECT_NE(kibitz::testing::MessageOf([&] { BatchStream(games_.get(), nullptr, options); }), "");
  EXPECT_NE(kibitz::testing::MessageOf([&] { BatchStream(nullptr, searches_.get(), options); }),
            "");
}

TEST(TrainOptionsTest, TargetsThatNeedOthersSaySo) {
  FinetuneOptions options;
  options.data.variation_parquet_dir = options.data.pretrain_parquet_dir = "here";
  CheckOptions(options);
  options.data.thinking.square_moves = true;
  EXPECT_NE(kibitz::testing::MessageOf([&] { CheckOptions(options); }).find("data.piece_moves"),
            std::string::npos);
  options.data.thinking.piece_moves = true;
  options.data.thinking.legal_share = 0.1;
  EXPECT_NE(kibitz::testing::MessageOf([&] { CheckOptions(options); }).find("data.soft_targets"),
            std::string::npos);
  options.data.thinking.soft_targets = true;
  CheckOptions(options);
}

}  // namespace
}  // namespace kibitz::decoder
