#include "students/policy/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/memory.h"
#include "io/tables/npy.h"
#include "students/policy/data/export.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/precompute.h"
#include "students/policy/data/verify.h"
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
  BatchStream walk(data_, sets.train, options);
  for (size_t skip = 0; skip < expected.size(); ++skip) {
    if (skip % 7 == 0) {
      const std::vector<Batch> rest = All(sets.train, options, walk.position());
      ASSERT_EQ(rest.size(), expected.size() - skip);
      for (size_t i = 0; i < rest.size(); ++i) ASSERT_TRUE(Same(rest[i], expected[skip + i]));
    }
    walk.Next();
  }
  EXPECT_EQ(walk.position(), 2 * sets.train.candidates());
}

// Each epoch has every sample once, in another order; inputs and labels are those of the position.
TEST_F(BatchesTest, EpochsAreWholeAndLabelsBelong) {
  const SampleSets sets = SelectSamples(data_, {});
  const auto key = [](const Batch& batch, int64_t row, int64_t inputs) {
    return std::vector<float>(batch.inputs.begin() + row * inputs,
                              batch.inputs.begin() + (row + 1) * inputs);
  };
  for (const InputForm form : {InputForm{.flat = true}, InputForm{.flip = true},
                               InputForm{.flip = true, .attacks = true}}) {
    std::map<std::vector<float>, std::map<int64_t, float>> expected;
    std::vector<Analysis> scratch;
    for (uint64_t i = 0; i < sets.train.candidates(); ++i) {
      const Sample sample = data_.split(Split::kTrain).At(i, scratch);
      if (sample.analyses.empty()) continue;
      std::vector<float> inputs(static_cast<size_t>(form.size()));
      WriteInputs(sample.position, form, inputs.data());
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

// A depth limit drops positions as they are drawn: batches stay full, an epoch has each position
// that passes once, and any place is a start.
TEST_F(BatchesTest, MinDepthChoosesPositions) {
  DataOptions options;
  options.min_depth = 25;
  const SampleSets sets = SelectSamples(data_, options);
  uint64_t expected = 0;
  std::vector<Analysis> scratch;
  const SplitData& train = data_.split(Split::kTrain);
  for (uint64_t i = 0; i < train.size(); ++i) {
    expected += DeepestOf(train.At(i, scratch).analyses) >= 25 ? 1 : 0;
  }
  EXPECT_EQ(sets.train.size(), expected);
  ASSERT_LT(expected, train.size());
  ASSERT_GT(expected, 0U);
  const StreamOptions stream_options = {.seed = 3, .batch_size = 16, .epochs = 2, .threads = 2};
  const std::vector<Batch> all = All(sets.train, stream_options);
  BatchStream walk(data_, sets.train, stream_options);
  std::map<uint64_t, uint64_t> rows;  // By epoch.
  for (size_t i = 0; i < all.size(); ++i) {
    rows[all[i].epoch] += static_cast<uint64_t>(all[i].rows);
    const bool last = i + 1 == all.size() || all[i + 1].epoch != all[i].epoch;
    EXPECT_TRUE(last || all[i].rows == 16) << i;
    walk.Next();
    const std::vector<Batch> rest = All(sets.train, stream_options, walk.position());
    ASSERT_EQ(rest.size(), all.size() - i - 1);
    ASSERT_TRUE(rest.empty() || Same(rest[0], all[i + 1]));
  }
  EXPECT_EQ(rows, (std::map<uint64_t, uint64_t>{{0, expected}, {1, expected}}));
  options.min_depth = 10'000;
  EXPECT_NE(kibitz::testing::MessageOf([&] { SelectSamples(data_, options); }).find("too deep"),
            std::string::npos);
}

// Planes of another program, whose moves may lie beyond the vocabulary that came with them.
class ForeignPlanesTest : public BatchesTest {
 protected:
  ForeignPlanesTest() : planes_(folder_.File("planes")) {
    Export(data_.folder(), planes_, {.storage = Storage::kPlanes});
    std::filesystem::remove(planes_ + "/manifest.json");
  }

  // Only moves of White's half of the board: no move has its mirror image.
  void WriteHalfVocabulary() const {
    std::vector<MoveWord> words;
    for (int i = 0; i < Vocabulary::Full().size(); ++i) {
      const MoveWord word = Vocabulary::Full()[i];
      if (word.from < 32 && word.to < 32) words.push_back(word);
    }
    Vocabulary(words).Write(planes_ + "/vocab.npy");
  }
  // Sets a number of an analysis: 0 is the move.
  void SetNumber(uint64_t analysis, uint64_t number, int32_t value) const {
    const std::string path = planes_ + "/train_analysis_data.npy";
    const uint64_t header =
        std::filesystem::file_size(path) - io::NpyFile::Open(path).bytes().size();
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(header + (analysis * 5 + number) * 4));
    file.write(reinterpret_cast<const char*>(&value), 4);
  }

  std::string planes_;
};

TEST_F(ForeignPlanesTest, MovesBeyondTheVocabularyAreSkippedAndCounted) {
  WriteHalfVocabulary();
  const Dataset data = Dataset::Open(planes_);
  const int moves = data.vocabulary().size();
  ASSERT_LT(moves, 1000);
  const SampleSets sets = SelectSamples(data, {});
  for (const bool flip : {false, true}) {
    BatchStream stream(data, sets.train, {.batch_size = 64, .form = {.flip = flip}, .threads = 2});
    uint64_t rows = 0;
    while (const std::optional<Batch> batch = stream.Next()) {
      rows += static_cast<uint64_t>(batch->rows);
      std::vector<double> sums(static_cast<size_t>(batch->rows));
      for (size_t e = 0; e < batch->label_rows.size(); ++e) {
        ASSERT_GE(batch->label_moves[e], 0);
        ASSERT_LT(batch->label_moves[e], moves);
        sums[static_cast<size_t>(batch->label_rows[e])] += batch->label_shares[e];
      }
      for (const double sum : sums) ASSERT_NEAR(sum, 1, 1e-5);
      for (const int64_t best : batch->best) ASSERT_LT(best, moves);
    }
    EXPECT_GT(rows, 0U);
    EXPECT_LT(rows, sets.train.candidates());
    EXPECT_GT(stream.skipped().CountOf("analysis of a move outside the vocabulary"), 0U);
    EXPECT_GT(stream.skipped().CountOf("position without a usable analysis"), 0U);
  }
  // As packed rows: without the analyses that name no move.
  Export(planes_, folder_.File("packed"), {.storage = Storage::kPacked});
  EXPECT_EQ(Verify(Dataset::Open(folder_.File("packed")), {.legal_sample = 0})
                .faults.count("moves outside the vocabulary"),
            0U);
}

TEST_F(ForeignPlanesTest, ANegativeMoveIsNoMove) {
  SetNumber(0, 0, -5);
  const Dataset data = Dataset::Open(planes_);
  std::vector<Analysis> scratch;
  EXPECT_EQ(data.split(Split::kTrain).At(0, scratch).analyses[0].move, kNoMove);
}

TEST_F(ForeignPlanesTest, UnreadablePositionsAreSkippedAndCounted) {
  const std::string path = planes_ + "/train_planes.npy";
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-kPlaneBytes, std::ios::end);
  file.write(std::string(kPlaneBytes, '\0').data(), kPlaneBytes);
  file.close();
  const Dataset data = Dataset::Open(planes_);
  const SampleSets sets = SelectSamples(data, {});
  BatchStream stream(data, sets.train, {.batch_size = 64});
  while (stream.Next()) {
  }
  EXPECT_EQ(stream.skipped().CountOf("unreadable position"), 1U);
  EXPECT_EQ(stream.skipped().entries().at("unreadable position").first.row,
            static_cast<int64_t>(data.split(Split::kTrain).size() - 1));
}

// The file is sparse and far larger than what may be read of it at the start.
TEST_F(ForeignPlanesTest, StartsWithoutReadingTheWholeFile) {
  constexpr int64_t kRows = 20'000'000;
  const std::string big = folder_.File("big");
  std::filesystem::create_directories(big);
  const auto sparse = [&](const std::string& name, io::DType type, std::vector<int64_t> shape) {
    const std::string path = big + "/train_" + name + ".npy";
    uint64_t bytes = io::SizeOf(type);
    for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
    const std::string header = io::NpyHeader(io::NpyLayout::Of(type), shape);
    std::ofstream(path, std::ios::binary) << header;
    std::filesystem::resize_file(path, header.size() + bytes);
  };
  sparse("planes", io::DType::kU8, {kRows, 13, 8, 8});
  sparse("meta", io::DType::kI8, {kRows, 5});
  sparse("analysis_data", io::DType::kI32, {0, 5});
  sparse("analysis_offsets", io::DType::kU32, {kRows + 1});
  const uint64_t before = PeakMemory();
  const Dataset data = Dataset::Open(big);
  EXPECT_NE(kibitz::testing::MessageOf([&] { SelectSamples(data, {}); }).find("no position"),
            std::string::npos);
  EXPECT_LT(PeakMemory() - before, uint64_t{256} << 20);  // Of 17 GB.
}

// Rows with mate in one weigh more, all others 1.
TEST_F(BatchesTest, MatesWeighAsAsked) {
  const SampleSets sets = SelectSamples(data_, {});
  const StreamOptions options = {.seed = 4, .batch_size = 1 << 20, .shuffle = false};
  StreamOptions weighted = options;
  weighted.mate_weight = 3;
  const std::vector<Batch> plain = All(sets.train, options);
  const std::vector<Batch> heavy = All(sets.train, weighted);
  ASSERT_EQ(plain.size(), 1);
  ASSERT_EQ(heavy.size(), 1);
  EXPECT_EQ(heavy[0].label_moves, plain[0].label_moves);
  std::vector<Analysis> scratch;
  int mates = 0;
  for (size_t e = 0; e < plain[0].label_rows.size(); ++e) {
    const auto row = static_cast<uint64_t>(plain[0].label_rows[e]);
    const Sample sample = data_.split(Split::kTrain).At(row, scratch);
    const bool black = sample.position.black_to_move();
    const bool mate = std::ranges::any_of(sample.analyses, [&](const Analysis& analysis) {
      return analysis.is_mate() && (black ? -analysis.score : analysis.score) == 1;
    });
    mates += mate ? 1 : 0;
    EXPECT_FLOAT_EQ(heavy[0].label_shares[e], plain[0].label_shares[e] * (mate ? 3.0F : 1.0F));
  }
  EXPECT_GT(mates, 0);
}

}  // namespace
}  // namespace kibitz::policy
