// A pack: the games of an oracle as one list of rows (steps.npy, or shards steps-00000.npy, ...),
// with their figures in metadata.db and the names of valuation types in valuation_types.json.
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
  // Maps the rows, of 48 or 46 bytes, and reads the rest. Throws Error.
  static Pack Open(const std::string& folder);

  uint64_t rows() const { return shards_.back().end; }
  // A row as it is in the file; Check() tells whether it makes sense.
  StepRow Row(uint64_t index) const;
  // Throws Error, naming file and row, where legality, largest rank or move do not fit the board, a
  // value is no number, or the run or valuation type is not known.
  void CheckRows() const;

  const std::vector<RunInfo>& runs() const { return runs_; }
  const std::vector<std::string>& valuation_types() const { return valuation_types_; }
  const std::string& folder() const { return folder_; }
  size_t shards() const { return shards_.size(); }
  int row_bytes() const { return static_cast<int>(shards_.front().file.layout().row_bytes); }

  // The ids of the runs that an SQL query on metadata.db gives, in its first column, sorted; its
  // parameters are bound in order, as numbers where they are numbers. Throws Error.
  std::vector<uint32_t> SelectRuns(const std::string& sql,
                                   const std::vector<std::string>& parameters) const;

 private:
  struct Shard {
    io::NpyFile file;
    uint64_t begin = 0;  // Rows of the pack.
    uint64_t end = 0;
  };

  void OpenShards();
  void ReadRuns();

  std::string folder_;
  std::vector<Shard> shards_;
  std::vector<RunInfo> runs_;
  std::vector<std::string> valuation_types_;  // By number.
};

// Why a row is not as it must be; empty when it is.
std::string ProblemOf(const StepRow& row);

}  // namespace kibitz::twenty48
