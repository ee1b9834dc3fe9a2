// A pack: the games of an oracle as one list of rows (steps.npy, or shards steps-00000.npy, ...),
// with their metadata in metadata.db and the names of valuation types in valuation_types.json.
//
//   const Pack pack = Pack::Open("packs/d2");
//   for (uint64_t i = 0; i < pack.rows(); ++i) Use(pack.Row(i));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "students/twenty48/data/step_row.h"

namespace kibitz::twenty48 {

// A game, as in the table "runs".
struct RunInfo {
  uint32_t id = 0;
  int64_t seed = 0;
  int64_t steps = 0;
  int64_t max_score = 0;
  int64_t highest_tile = 0;
};

class Pack {
 public:
  // Memory-maps the rows, of 48 or 46 bytes, and reads the rest. Throws Error.
  static Pack Open(const std::string& folder);

  uint64_t rows() const { return shards_.back().end; }
  // A row as stored; CheckRows() validates it.
  StepRow Row(uint64_t index) const;
  // Throws Error, naming file and row, where legality, max_rank or move do not fit the board, a
  // value is infinite or NaN, or the run or valuation type is unknown.
  void CheckRows() const;

  const std::vector<RunInfo>& runs() const { return runs_; }
  const std::vector<std::string>& valuation_types() const { return valuation_types_; }
  const std::string& folder() const { return folder_; }
  size_t shards() const { return shards_.size(); }
  int row_bytes() const { return static_cast<int>(shards_.front().file.layout().row_bytes); }

  // Run ids: the sorted first column of an SQL query on metadata.db. Binds the parameters in order,
  // as numbers where they parse as numbers. Throws Error.
  std::vector<uint32_t> SelectRuns(const std::string& sql,
                                   const std::vector<std::string>& parameters) const;

 private:
  struct Shard {
    io::NpyFile file;
    uint64_t begin = 0;  // Row indices in the pack.
    uint64_t end = 0;
  };

  void OpenShards();
  void ReadRuns();

  std::string folder_;
  std::vector<Shard> shards_;
  std::vector<RunInfo> runs_;
  std::vector<std::string> valuation_types_;  // By number.
};

// What is invalid in a row; empty when nothing is.
std::string ProblemOf(const StepRow& row);

}  // namespace kibitz::twenty48
