// Training records from lc0's own training data: games for the decoder, visits as soft labels for
// the policy, and PGN. The input streams through: memory is the same for any number of files, and
// the output is the same for any number of threads.
//
//   SkipCounter skipped;
//   Progress progress("rows", 0);
//   const Lc0Records made = MakeLc0Records({"training.tar"}, {.games = "games.parquet"}, skipped,
//   progress);
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "base/skip_counter.h"
#include "oracles/lc0/training_row.h"

namespace kibitz::oracles {

// Which value a position gets as win, draw and loss.
enum class Lc0Value { kBest, kRoot, kResult };

// Scores of policy rows: 1000 ln(share / greatest share). As labels at a temperature of 1000 these
// are the shares again, to 0.05%.
inline constexpr double kVisitTemperature = 1000;

struct Lc0RecordOptions {
  std::string games = {};   // Parquet: a row for each position.
  std::string policy = {};  // Parquet in the layout of evaluations; "": none.
  std::string pgn = {};     // "": none.
  Lc0Value value = Lc0Value::kBest;
  int64_t limit = 0;                                               // Max games; 0: all.
  int threads = 0;                                                 // 0: one for each core.
  nlohmann::ordered_json note = nlohmann::ordered_json::object();  // Kept in the files' metadata.
};
// Those that a user chooses and the records depend on.
Fields FieldsOf(Lc0RecordOptions& options);

struct Lc0Records {
  int64_t files = 0;      // Files of rows, those in archives included.
  int64_t rows = 0;       // Read.
  int64_t positions = 0;  // Written.
  int64_t games = 0;      // A file with a gap makes two.
  int64_t policy_rows = 0;
  std::map<std::string, int64_t> results;  // Of games.

  nlohmann::ordered_json ToJson() const;
};

// The files that the names stand for: themselves, or all .gz and .tar (.gz, .zst) files below a
// folder, sorted. Throws Error when there are none.
std::vector<std::string> FindLc0Files(const std::vector<std::string>& paths);

// Files appear when all of the input is read. Damaged input is counted in `skipped`. Throws Error
// when a file cannot be read or written, and after Ctrl-C.
Lc0Records MakeLc0Records(const std::vector<std::string>& paths, const Lc0RecordOptions& options,
                          SkipCounter& skipped, Progress& progress);

}  // namespace kibitz::oracles
