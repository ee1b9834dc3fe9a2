// PGN games as records of games. Labels come from the file where it has them, else from a teacher,
// if there is one:
//
//   wdl        the [%eval] of the position, by wdl_model.h; else the teacher's; else it is missing
//   best_move  the first move of a variation given to a move marked ?!, ? or ?? ("Nf3 was best");
//              else the teacher's; without a teacher the move played, see `tolerance`
//   played_q   from the wdl of the position after the move, exact where the game ends there
//
// A position without a best move makes no row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "base/skip_counter.h"
#include "oracles/records/part_store.h"
#include "oracles/records/teacher.h"
#include "oracles/records/wdl_model.h"

namespace kibitz::oracles {

struct PgnRecordOptions {
  // Centipawns. Without a teacher the move played counts as best when it lost no more than this, by
  // the evaluations before and after it.
  int tolerance = 20;
  bool ignore_notes = false;  // Ignore the file's labels.
  int64_t limit = 0;          // Games; 0: all.
  int64_t part_games = 8;     // In a part.
  WdlModel wdl_model = {};
};
Fields FieldsOf(PgnRecordOptions& options);

// Writes the missing parts; returns the number of positions that the teacher, which may be null,
// searched. Duplicate games and those without a row are skipped. Progress counts games.
int64_t MakePgnRecords(const std::vector<std::string>& paths, Teacher* teacher,
                       const PgnRecordOptions& options, const PartStore& parts,
                       SkipCounter& skipped, Progress& progress);

}  // namespace kibitz::oracles
