#include "students/policy/data/batches.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "students/policy/data/planes.h"
#include "students/policy/data/precompute.h"
#include "tests/support/test_data.h"

namespace kibitz::policy {
namespace {

using kibitz::testing::GoldenPath;
using kibitz::testing::TempFolder;

class BatchesTest : public ::testing::Test {
 protected:
  BatchesTest()
      : made_(Precompute({GoldenPath("policy/rows/lichess_db_eval.jsonl.zst")},
                         folder_.File("data"), {.threads = 2, .shares = {.val = 0.1, .test = 0}})),
        data_(Dataset::Open(folder_.File("data"))) {}

  // Everything a stream hands out, batch by batch.
  std::vector<Batch> All(const SampleSet& samples, const StreamOptions& options,
                         uint64_t position = 0) const {
    BatchStream stream(data_, samples, options, position);
    std::vector<Batch> batches;
    while (auto batch = stream.Next()) batches.push_back(std::move(*batch));
    return batches;
  }

  TempFolder folder_;
  Manifest made_;
  Dataset data_;
};

bool Same(const Batch& a, const Batch& b) {
  return a.rows == b.rows && a.inputs == b.inputs && a.label_rows == b.label_rows &&
         a.label_moves == b.label_moves && a.label_shares == b.label_shares && a.best == b.best &&
         a.epoch == b.epoch;
}

TEST_F(BatchesTest, ThreadsDoNotShowAndAnyPlaceIsAStart) {
  const SampleSets sets = SelectSamples(data_, {});
  StreamOptions options = {.seed = 4, .batch_size = 50, .epochs = 2};
  const std::vector<Batch> expected = All(sets.train, options);
  options.threads = 3;
  const std::vector<Batch> threaded = All(sets.train, options);
  ASSERT_EQ(threaded.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(Same(threaded[i], expected[i]));
  uint64_t position = 0;
  for (size_t skip = 0; skip < expected.size(); skip += 7) {
    const std::vector<Batch> rest = All(sets.train, options, position);
    ASSERT_EQ(rest.size(), expected.size() - skip);
    for (size_t i = 0; i < rest.size(); ++i) ASSERT_TRUE(Same(rest[i], expected[skip + i]));
    for (size_t i = skip; i < std::min(skip + 7, expected.size()); ++i) {
      position += static_cast<uint64_t>(expected[i].rows);
    }
  }
}

// Each epoch has every sample once, in another order; inputs and labels are those of the position.
TEST_F(BatchesTest, EpochsAreWholeAndLabelsBelong) {
  const SampleSets sets = SelectSamples(data_, {});
  const auto key = [](const Batch& batch, int64_t row, int64_t inputs) {
    return std::vector<float>(batch.inputs.begin() + row * inputs,
                              batch.inputs.begin() + (row + 1) * inputs);
  };
  for (const InputForm form :
       {InputForm{.flat = true, .flip = false}, InputForm{.flat = false, .flip = true}}) {
    std::map<std::vector<float>, std::map<int64_t, float>> expected;
    std::vector<Analysis> scratch;
    for (uint64_t i = 0; i < sets.train.size(); ++i) {
      const Sample sample = data_.split(Split::kTrain).At(sets.train[i], scratch);
      std::vector<float> inputs(static_cast<size_t>(form.size()));
      if (form.flat) {
        WriteFlat(sample.position, inputs.data());
      } else {
        WriteChannels(sample.position, form.flip, inputs.data());
      }
      std::vector<MoveShare> shares;
      AppendLabel(sample.analyses, sample.position.black_to_move(), {}, shares);
      for (const MoveShare& share : shares) {
        MoveWord word = data_.vocabulary()[share.move];
        if (form.flip && sample.position.black_to_move()) word = word.Flipped();
        if (static_cast<float>(share.share) > 0) {
          expected[inputs][data_.vocabulary().IndexOf(word)] = static_cast<float>(share.share);
        }
      }
    }
    std::vector<int64_t> first_best;
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::map<std::vector<float>, std::map<int64_t, float>> seen;
      std::vector<int64_t> best;
      for (const Batch& batch :
           All(sets.train, {.seed = 1, .batch_size = 64, .epochs = 2, .form = form})) {
        if (batch.epoch != epoch) continue;
        for (size_t e = 0; e < batch.label_rows.size(); ++e) {
          seen[key(batch, batch.label_rows[e], form.size())][batch.label_moves[e]] =
              batch.label_shares[e];
        }
        best.insert(best.end(), batch.best.begin(), batch.best.end());
      }
      EXPECT_EQ(best.size(), sets.train.size());
      EXPECT_TRUE(seen == expected);
      EXPECT_NE(best, first_best);
      first_best = best;
    }
  }
}

TEST_F(BatchesTest, MinDepthChoosesPositions) {
  DataOptions options;
  options.min_depth = 25;
  const SampleSets sets = SelectSamples(data_, options);
  EXPECT_LT(sets.train.size(), data_.split(Split::kTrain).size());
  EXPECT_GT(sets.train.size(), 0U);
  std::vector<Analysis> scratch;
  for (uint64_t i = 0; i < sets.train.size(); ++i) {
    EXPECT_GE(DeepestOf(data_.split(Split::kTrain).At(sets.train[i], scratch).analyses), 25);
  }
  options.min_depth = 10'000;
  EXPECT_NE(kibitz::testing::MessageOf([&] { SelectSamples(data_, options); }).find("too deep"),
            std::string::npos);
}

}  // namespace
}  // namespace kibitz::policy
