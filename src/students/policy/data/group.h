// The second half of a precompute: sorts one partition's rows by the hash of their position and
// groups the rows of equal positions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "students/policy/data/rows.h"
#include "students/policy/data/shard.h"
#include "students/policy/data/split.h"

namespace kibitz::policy {

// Positions of one split in the order of their hash, each with its count of analyses; and the
// analyses, in the order of ComesBefore.
struct Grouped {
  std::vector<PackedPosition> positions;
  std::vector<Analysis> analyses;
};

struct GroupedPartition {
  std::array<Grouped, kSplits.size()> splits;  // By Split.
  SkipCounter skipped;
};

// What is sorted; rows are read afterwards, in the order of their keys.
struct RowKey {
  uint64_t hash;
  uint32_t row;
};

// The memory that grouping takes, but for its result. One for each thread, used for partition after
// partition: new memory costs a page fault for every 4 KB.
struct GroupingSpace {
  std::vector<PackedRow> rows;
  std::vector<RowKey> keys;
  std::vector<RowKey> sorted;
};

// Reads the partition of all shards and checks the checksums. Throws Error.
GroupedPartition GroupPartition(const std::vector<ShardState>& shards, size_t partition,
                                const SplitShares& shares, GroupingSpace& space);
// The same of rows in memory.
GroupedPartition GroupRows(std::vector<PackedRow> rows, const SplitShares& shares);

// Max memory that grouping a partition of so many bytes takes.
constexpr uint64_t GroupingBytes(uint64_t bytes) { return bytes * 5 / 2; }

}  // namespace kibitz::policy
