#include "students/twenty48/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::GoldenPath;
using kibitz::testing::MessageOf;
using ::testing::HasSubstr;

Pack Golden() { return Pack::Open(GoldenPath("twenty48/pack")); }

std::set<uint32_t> RunsOf(const Pack& pack, const std::vector<uint64_t>& rows) {
  std::set<uint32_t> runs;
  for (uint64_t row : rows) runs.insert(pack.Row(row).run_id);
  return runs;
}

TEST(SelectRows, ValidationHasGamesOfItsOwn) {
  const Pack pack = Golden();
  DatasetOptions options;
  options.val_run_pct = 0.5;
  const RowSet rows = SelectRows(pack, options);
  const std::set<uint32_t> train = RunsOf(pack, rows.train);
  EXPECT_FALSE(rows.validation.empty());
  for (uint32_t run : RunsOf(pack, rows.validation)) EXPECT_FALSE(train.contains(run));
  EXPECT_EQ(rows.train.size() + rows.validation.size(), pack.rows());
}

TEST(SelectRows, ByQueries) {
  const Pack pack = Golden();
  DatasetOptions options;
  options.run_sql = "SELECT id FROM runs WHERE max_score BETWEEN ? AND ?";
  options.sql_params = {"20000", "100000"};
  options.val_run_sql = "SELECT id FROM runs WHERE highest_tile = 65536";
  const RowSet rows = SelectRows(pack, options);
  for (const RunInfo& run : pack.runs()) {
    const bool chosen = run.max_score >= 20000 && run.max_score <= 100000;
    EXPECT_EQ(RunsOf(pack, rows.train).contains(run.id), chosen);
    EXPECT_EQ(RunsOf(pack, rows.validation).contains(run.id), run.highest_tile == 65536);
  }
  options.run_sql = "SELECT id FROM runs WHERE max_score < 0";
  options.sql_params.clear();
  EXPECT_THAT(MessageOf([&] { SelectRows(pack, options); }), HasSubstr("no rows"));
}

TEST(BatchStream, IsTheSameFromAnyPlaceAndSeesEveryRowOnce) {
  const Pack pack = Golden();
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < 1000; ++i) rows.push_back(3 * i);
  const StreamOptions options = {
      .seed = 4, .batch_size = 96, .epochs = 2, .rotate = true, .flip = true};
  BatchStream whole(pack, rows, options);
  std::vector<Batch> batches;
  std::vector<uint64_t> positions = {0};
  uint64_t total = 0;
  while (std::optional<Batch> batch = whole.Next()) {
    total += static_cast<uint64_t>(batch->rows());
    batches.push_back(std::move(*batch));
    positions.push_back(whole.position());
  }
  EXPECT_EQ(total, 2000U);
  for (size_t i : {size_t{3}, batches.size() - 2}) {
    BatchStream part(pack, rows, options, positions[i]);
    EXPECT_EQ(part.Next()->tokens, batches[i].tokens);
  }
  EXPECT_NE(batches[0].tokens, batches[11].tokens);  // The second epoch has another order.
}

TEST(BatchStream, LegalityComesFromTheBoard) {
  const Pack pack = Golden();
  std::vector<uint64_t> rows;
  int unlike = 0;
  for (uint64_t i = 0; i < pack.rows(); ++i) {
    const StepRow row = pack.Row(i);
    if (JudgedOf(row).legal != row.ev_legal) ++unlike;
    rows.push_back(i);
  }
  EXPECT_GT(unlike, 0);  // Tuple rows have values for illegal moves.
  BatchStream stream(pack, rows, {.batch_size = 4096, .rotate = true, .flip = true});
  const std::optional<Batch> batch = stream.Next();
  for (const Judged& judged : batch->judged) {
    EXPECT_NE(judged.legal >> judged.move & 1, 0U);
  }
}

TEST(CanonicalView, IsOneForAllViews) {
  const Pack pack = Golden();
  for (uint64_t i = 0; i < pack.rows(); i += 37) {
    const Board board = BoardOf(pack.Row(i));
    const Board canonical = Seen(board, CanonicalView(board));
    for (int turns = 0; turns < 4; ++turns) {
      for (int flip = 0; flip < 3; ++flip) {
        const Board view = Seen(board, {turns, flip});
        EXPECT_EQ(Seen(view, CanonicalView(view)), canonical);
      }
    }
  }
}

}  // namespace
}  // namespace kibitz::twenty48
