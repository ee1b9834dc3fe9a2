// The evaluation database as a data set: every position once, all of its analyses with it, shuffled
// and split. Takes a bounded amount of memory for any amount of rows, can be killed at any moment,
// and gives the same bytes for any number of shards, threads and runs it took.
//
//   Precompute({"evals.parquet"}, "data", {.memory_bytes = 2u << 30});
//
// The rows are spread over partitions on disk by the hash of their position (shard.h), then each
// partition is sorted and grouped (group.h) and appended to the data set (dataset_files.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "students/policy/data/dataset_files.h"

namespace kibitz::policy {

struct PrecomputeOptions {
  uint64_t memory_bytes = uint64_t{2} << 30;
  int threads = 0;    // 0: one for each core.
  uint64_t rows = 0;  // The first so many only; 0: all.
  SplitShares shares = {};
  Storage storage = Storage::kPacked;
  // What was done is on disk and in a journal after so many seconds; a kill loses no more.
  double flush_seconds = 30;
  bool keep_shards = false;  // Of Precompute: else the packed input rows are removed at the end.
};

// Throws Error; of kind kInterrupted after Ctrl-C, with what was done kept for the next run. A
// folder that already holds this data set is left as it is.
Manifest Precompute(const std::vector<std::string>& inputs, const std::string& out,
                    const PrecomputeOptions& options);

// One slice of the input, for Merge: the folder out/shard-0001-of-0005, say.
ShardState PrecomputeShard(const std::vector<std::string>& inputs, const std::string& out,
                           uint64_t shards, uint64_t shard, const PrecomputeOptions& options);

// Joins shards: `folders` are theirs, or folders that hold them. All must be there and done; they
// stay as they are.
Manifest Merge(const std::vector<std::string>& folders, const std::string& out,
               const PrecomputeOptions& options);

}  // namespace kibitz::policy
