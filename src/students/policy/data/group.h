// The second half of a precompute: one partition's rows, sorted by the hash of their position, and
// the rows of equal positions put together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "students/policy/data/rows.h"
#include "students/policy/data/shard.h"
#include "students/policy/data/split.h"

namespace kibitz::policy {

// Positions of one split, in the order of their hash, each with its count of analyses; and these,
// in the order of ComesBefore.
struct Grouped {
  std::vector<PackedPosition> positions;
  std::vector<Analysis> analyses;
};

struct GroupedPartition {
  std::array<Grouped, kSplits.size()> splits;  // By Split.
  Tally tally;
};

// Reads the partition of all shards and checks the bytes against their checksums. Throws Error.
GroupedPartition GroupPartition(const std::vector<ShardState>& shards, size_t partition,
                                const SplitShares& shares);
// The same of rows in memory.
GroupedPartition GroupRows(std::vector<PackedRow> rows, const SplitShares& shares);

// Memory that grouping a partition of so many bytes takes at most.
constexpr uint64_t GroupingBytes(uint64_t bytes) { return bytes * 5 / 2; }

}  // namespace kibitz::policy
