// The second half of a precompute: one partition's rows, sorted by the hash of their position, and
// the rows of equal positions put together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "students/policy/rows.h"
#include "students/policy/shard.h"

namespace kibitz::policy {

enum class Split : uint8_t { kTrain, kVal, kTest };
inline constexpr std::array kSplits = {Split::kTrain, Split::kVal, Split::kTest};
std::string_view NameOf(Split split);  // "train", "val", "test"

// Shares of the positions that are held out; the rest is for training.
struct SplitShares {
  double val = 0.01;
  double test = 0.01;
};
// By the position alone: it stays where it is whatever else comes or goes.
Split SplitOf(uint64_t hash, const SplitShares& shares);

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
