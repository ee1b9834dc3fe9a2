// Batches of a pack's rows in random order. Batch n depends on the seed and n alone.
//
//   const RowSet rows = SelectRows(pack, options);
//   BatchStream stream(pack, rows.train, {.seed = 1, .batch_size = 1024}, position);
//   while (std::optional<Batch> batch = stream.Next()) Learn(*batch);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "students/twenty48/data/augment.h"
#include "students/twenty48/data/pack.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

struct DatasetOptions {
  std::string dataset_dir;
  // Games to use: a query on metadata.db whose first column is runs.id; empty: all.
  std::string run_sql;
  std::vector<std::string> sql_params;
  // Held out for validation: these games, or else this share of them, drawn by the seed.
  std::string val_run_sql;
  std::vector<std::string> val_sql_params;
  double val_run_pct = 0.05;
  uint64_t val_split_seed = 42;
  int64_t val_rows = 20'000;  // Max rows of each validation.
  int batch_size = 1024;
  bool rotate = true;  // Rotate boards at random.
  bool flip = true;    // Flip boards at random.
};
Fields FieldsOf(DatasetOptions& options);

// Row indices. No game is in both.
struct RowSet {
  std::vector<uint64_t> train;
  std::vector<uint64_t> validation;
};
// Throws Error when no rows are left to train on, or a row is invalid.
RowSet SelectRows(const Pack& pack, const DatasetOptions& options);

struct Batch {
  std::vector<uint8_t> tokens;  // 16 ranks a row, 16 for 65536 and more.
  std::vector<Judged> judged;
  uint64_t epoch = 0;
  int64_t rows() const { return static_cast<int64_t>(judged.size()); }
};

// Ranks as the network reads them.
void AppendTokens(const Board& board, std::vector<uint8_t>& tokens);

struct StreamOptions {
  uint64_t seed = 0;
  int batch_size = 1024;
  int64_t epochs = 1;   // 0: no end.
  bool shuffle = true;  // In another order each epoch.
  bool rotate = false;
  bool flip = false;
  bool canonical = false;  // All boards in their CanonicalView; rotate and flip have no effect.
  // R ranks of batch_size B share the rows that one of batch_size R B has.
  int rank = 0;
  int ranks = 1;
};

class BatchStream {
 public:
  // Borrows pack and rows. Skips the first `position` rows, counted over all epochs.
  BatchStream(const Pack& pack, const std::vector<uint64_t>& rows, const StreamOptions& options,
              uint64_t position = 0);

  // Nothing at the end. The last batch of an epoch may be smaller, and empty on some ranks.
  std::optional<Batch> Next();
  // Rows returned, including those skipped.
  uint64_t position() const { return position_; }

 private:
  void Order(uint64_t epoch);
  View ViewOf(const StepRow& row, uint64_t epoch, uint32_t place) const;

  const Pack& pack_;
  const std::vector<uint64_t>& rows_;
  StreamOptions options_;
  uint64_t position_;
  std::optional<uint64_t> ordered_epoch_;
  std::vector<uint32_t> order_;  // Places in rows_, for that epoch.
};

}  // namespace kibitz::twenty48
