// Makes a data set from the evaluation database: every position once, with all of its analyses,
// shuffled and split. Memory is bounded for any number of rows. A run can be killed at any moment
// and resumed; the bytes are the same for any number of shards, threads and runs.
//
//   Precompute({"evals.parquet"}, "data", {.memory_bytes = 2u << 30});
//
// The rows are spread over partitions on disk by the hash of their position (shard.h), then each
// partition is sorted and grouped (group.h) and appended to the data set (packed_writer.h). The
// ranks of a job make the shards in turn, sort a range of the partitions each, and write a part of
// every file (packed_parts.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/job_group.h"
#include "students/policy/data/manifest.h"
#include "students/policy/data/shard.h"

namespace kibitz::policy {

struct PrecomputeOptions {
  uint64_t memory_bytes = uint64_t{2} << 30;
  int threads = 0;    // 0: one for each core.
  uint64_t rows = 0;  // Max rows of the input; 0: all.
  SplitShares shares = {};
  Storage storage = Storage::kPacked;
  // Between flushes to disk and journal: a kill loses the work of so long at most.
  double flush_seconds = 30;
  bool keep_shards = false;  // Of Precompute: else the packed input rows are removed at the end.
  // Folder for unfinished work, on storage that all ranks share; "": out/work.
  std::string work = {};
  // Slices of the input; 0: those that are there from a run before, else one for each rank.
  uint64_t shards = 0;
  uint64_t piece_bytes = RowSourceOptions().piece_bytes;  // As there.
  JobGroup* job = nullptr;  // Who shares the work; null: nobody. All ranks make the same call.
};

// Throws Error; of kind kInterrupted after Ctrl-C, with the work kept for the next run. A folder
// that already holds this data set stays as it is.
Manifest Precompute(const std::vector<std::string>& inputs, const std::string& out,
                    const PrecomputeOptions& options);

// One slice of the input, for Merge: the folder out/shard-0001-of-0005, say.
ShardState PrecomputeShard(const std::vector<std::string>& inputs, const std::string& out,
                           uint64_t shards, uint64_t shard, const PrecomputeOptions& options);

// Joins shards: `folders` are shards, or hold them. All must be there and finished; they stay as
// they are.
Manifest Merge(const std::vector<std::string>& folders, const std::string& out,
               const PrecomputeOptions& options);

}  // namespace kibitz::policy
