#include "students/twenty48/data/batches.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/error.h"
#include "base/random.h"

namespace kibitz::twenty48 {
namespace {

std::unordered_set<uint32_t> AllRuns(const Pack& pack) {
  std::unordered_set<uint32_t> ids;
  for (const RunInfo& run : pack.runs()) ids.insert(run.id);
  return ids;
}

std::unordered_set<uint32_t> Chosen(const Pack& pack, const std::string& sql,
                                    const std::vector<std::string>& parameters) {
  if (sql.empty()) return AllRuns(pack);
  const std::vector<uint32_t> ids = pack.SelectRuns(sql, parameters);
  return {ids.begin(), ids.end()};
}

std::unordered_set<uint32_t> Validation(const Pack& pack, const DatasetOptions& options,
                                        const std::unordered_set<uint32_t>& chosen) {
  if (!options.val_run_sql.empty()) {
    return Chosen(pack, options.val_run_sql, options.val_sql_params);
  }
  // One draw per game: adding games moves no other game between the sets.
  std::unordered_set<uint32_t> validation;
  for (const RunInfo& run : pack.runs()) {
    if (!chosen.contains(run.id)) continue;
    Rng rng({.seed = options.val_split_seed, .sample = run.id, .purpose = Purpose("2048 split")});
    if (rng.Uniform() < options.val_run_pct) validation.insert(run.id);
  }
  return validation;
}

}  // namespace

Fields FieldsOf(DatasetOptions& options) {
  Fields fields;
  fields.Add("dataset_dir", options.dataset_dir, "folder of the pack", {.metavar = "DIR"});
  fields.Add(
      "run_sql", options.run_sql,
      "query on metadata.db for the games to use, such as SELECT id FROM runs WHERE max_score > ?");
  fields.Add("sql_params", options.sql_params, "values for the query's question marks");
  fields.Add("val_run_sql", options.val_run_sql, "query for the games held out for validation");
  fields.Add("val_sql_params", options.val_sql_params, "values for the query's question marks");
  fields.Add("val_run_pct", options.val_run_pct,
             "without val_run_sql: share of the games to hold out", {.min = 0, .max = 1});
  fields.Add("val_split_seed", options.val_split_seed, "random seed that draws these games");
  fields.Add("val_rows", options.val_rows, "max rows of each validation", {.min = 1});
  fields.Add("batch_size", options.batch_size, "rows of a batch", {.min = 1, .max = 1 << 20});
  fields.Add("rotate", options.rotate, "rotate boards at random");
  fields.Add("flip", options.flip, "flip boards at random");
  return fields;
}

RowSet SelectRows(const Pack& pack, const DatasetOptions& options) {
  pack.CheckRows();
  const auto chosen = Chosen(pack, options.run_sql, options.sql_params);
  const auto validation = Validation(pack, options, chosen);
  RowSet rows;
  for (uint64_t i = 0; i < pack.rows(); ++i) {
    const uint32_t run = pack.Row(i).run_id;
    if (validation.contains(run)) {
      rows.validation.push_back(i);
    } else if (chosen.contains(run)) {
      rows.train.push_back(i);
    }
  }
  if (rows.train.empty()) {
    throw Error(
        "{}: no rows to train on; check that run_sql selects games and val_run_pct is below 1",
        pack.folder());
  }
  return rows;
}

void AppendTokens(const Board& board, std::vector<uint8_t>& tokens) {
  for (int cell = 0; cell < kCells; ++cell) {
    tokens.push_back(static_cast<uint8_t>(std::min(board.Rank(cell), 16)));
  }
}

BatchStream::BatchStream(const Pack& pack, const std::vector<uint64_t>& rows,
                         const StreamOptions& options, uint64_t position)
    : pack_(pack), rows_(rows), options_(options), position_(position) {
  CHECK(!rows.empty());
}

void BatchStream::Order(uint64_t epoch) {
  if (ordered_epoch_ == epoch) return;
  order_.resize(rows_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  if (options_.shuffle) {
    Rng rng({.seed = options_.seed, .epoch = epoch, .purpose = Purpose("2048 order")});
    rng.Shuffle(order_);
  }
  ordered_epoch_ = epoch;
}

View BatchStream::ViewOf(const StepRow& row, uint64_t epoch, uint32_t place) const {
  if (options_.canonical) return CanonicalView(BoardOf(row));
  Rng rng(
      {.seed = options_.seed, .epoch = epoch, .sample = place, .purpose = Purpose("2048 view")});
  const int turns = options_.rotate ? static_cast<int>(rng.Below(4)) : 0;
  return {turns, options_.flip ? static_cast<int>(rng.Below(3)) : 0};
}

std::optional<Batch> BatchStream::Next() {
  const uint64_t epoch = position_ / rows_.size();
  if (options_.epochs > 0 && epoch >= static_cast<uint64_t>(options_.epochs)) return std::nullopt;
  Order(epoch);
  const uint64_t begin = position_ % rows_.size();
  const uint64_t end =
      std::min<uint64_t>(rows_.size(), begin + static_cast<uint64_t>(options_.batch_size) *
                                                   static_cast<uint64_t>(options_.ranks));
  Batch batch;
  batch.epoch = epoch;
  for (uint64_t i = begin + static_cast<uint64_t>(options_.rank); i < end;
       i += static_cast<uint64_t>(options_.ranks)) {
    StepRow row = pack_.Row(rows_[order_[i]]);
    row = Augmented(row, ViewOf(row, epoch, order_[i]));
    AppendTokens(BoardOf(row), batch.tokens);
    batch.judged.push_back(JudgedOf(row));
  }
  position_ += end - begin;
  return batch;
}

}  // namespace kibitz::twenty48
