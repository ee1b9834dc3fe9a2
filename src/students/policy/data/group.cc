#include "students/policy/data/group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"
#include "games/chess/movegen.h"
#include "io/bytes/crc32c.h"

namespace kibitz::policy {
namespace {

constexpr size_t kAhead = 24;  // Rows that are prefetched.

// Room for some more, so that partitions of about the same size do not take it anew. The old
// contents are not kept.
template <typename T>
void Resize(std::vector<T>& items, size_t size) {
  if (size > items.capacity()) {
    items = {};
    items.reserve(size + size / 8);
  }
  items.resize(size);
}

// Fills `sorted`, by hash: first into buckets by the highest bits in which hashes differ, then each
// bucket, which fits into the first-level cache.
void SortKeys(GroupingSpace& space) {
  const std::vector<PackedRow>& rows = space.rows;
  std::vector<RowKey>& keys = space.keys;
  std::vector<RowKey>& sorted = space.sorted;
  CHECK(rows.size() <= std::numeric_limits<uint32_t>::max());
  constexpr int kBucketBits = 11;
  constexpr size_t kBuckets = size_t{1} << kBucketBits;
  Resize(keys, rows.size());
  Resize(sorted, rows.size());
  uint64_t differing = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    keys[i] = {HashOf(rows[i].position), static_cast<uint32_t>(i)};
    differing |= keys[i].hash ^ keys[0].hash;
  }
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - kBucketBits);
  const auto bucket = [shift](const RowKey& key) { return key.hash >> shift & (kBuckets - 1); };
  std::array<size_t, kBuckets + 1> ends{};  // First counts, then where each bucket ends.
  for (const RowKey& key : keys) ++ends[bucket(key) + 1];
  for (size_t i = 0; i < kBuckets; ++i) ends[i + 1] += ends[i];
  for (const RowKey& key : keys) sorted[ends[bucket(key)]++] = key;
  size_t begin = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(begin),
              sorted.begin() + static_cast<std::ptrdiff_t>(ends[i]),
              [](const RowKey& a, const RowKey& b) { return a.hash < b.hash; });
    begin = ends[i];
  }
}

// Rows are read in random order.
void Prefetch(const PackedRow& row) {
  __builtin_prefetch(&row);
  __builtin_prefetch(reinterpret_cast<const char*>(&row) + sizeof(PackedRow) - 1);
}

// Order of rows with equal hashes: by position, as two may share a hash, then by analysis.
bool RowBefore(const PackedRow& a, const PackedRow& b) {
  const int order = std::memcmp(&a.position, &b.position, offsetof(PackedPosition, analyses));
  if (order != 0) return order < 0;
  if (a.position.analyses != b.position.analyses) return a.position.analyses > b.position.analyses;
  return ComesBefore(a.analysis, b.analysis);
}

// Which moves of a position are legal. Its analyses name few of them, so that only the moves of
// pieces asked for are generated.
class LegalWords {
 public:
  // False when the position is impossible: the side not to move is in check.
  bool Set(const PackedPosition& position) {
    board_ = BoardOf(position);
    known_ = 0;
    const chess::Color mover = board_.side_to_move();
    const chess::Square king = board_.KingOf(~mover);
    return (board_.AttackersOf(king, board_.occupied()) & board_.pieces(mover)) == 0;
  }
  bool Has(const MoveWord& word) {
    const chess::Square from(word.from);
    if ((known_ & from.bit()) == 0) {
      targets_[word.from] = LegalTargets(board_, from);
      known_ |= from.bit();
    }
    return (targets_[word.from] >> word.to & 1) != 0 && Promotes(word) == (word.promotion != 0);
  }

 private:
  bool Promotes(const MoveWord& word) const {
    constexpr chess::Bitboard kLastRanks = chess::RankOf(0) | chess::RankOf(7);
    return (kLastRanks >> word.to & 1) != 0 && (board_.pawns() >> word.from & 1) != 0;
  }

  chess::Board board_;
  chess::Bitboard known_ = 0;                  // Where targets_ is filled.
  std::array<chess::Bitboard, 64> targets_{};  // By from.
};

class Grouper {
 public:
  // Reserved memory that is never written costs nothing.
  Grouper(const SplitShares& shares, size_t rows) : shares_(shares) {
    Grouped& train = result_.splits[static_cast<size_t>(Split::kTrain)];
    train.positions.reserve(rows);
    train.analyses.reserve(rows);
  }

  // All rows of one position, in order.
  void Add(uint64_t hash, std::span<const PackedRow> rows) {
    if (!legal_.Set(rows[0].position)) {
      Skip(result_.skipped, RowFault::kImpossible);
      return;
    }
    Grouped& to = result_.splits[static_cast<size_t>(SplitOf(hash, shares_))];
    uint32_t count = 0;
    for (const PackedRow& row : rows) {
      if (row.position.analyses == 0) break;  // Rows without an analysis come last.
      if (!legal_.Has(words_[row.analysis.move])) {
        Skip(result_.skipped, RowFault::kIllegalMove);
      } else if (count == std::numeric_limits<uint16_t>::max()) {
        Skip(result_.skipped, RowFault::kTooMany);
      } else {
        to.analyses.push_back(row.analysis);
        ++count;
      }
    }
    to.positions.push_back(rows[0].position);
    to.positions.back().analyses = static_cast<uint16_t>(count);
  }
  GroupedPartition Take() { return std::move(result_); }

 private:
  SplitShares shares_;
  const Vocabulary& words_ = Vocabulary::Full();
  LegalWords legal_;
  GroupedPartition result_;
};

void ReadInto(const std::string& path, const FileState& expected, char* to) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error::System("cannot read " + path);
  uint64_t filled = 0;
  while (filled < expected.bytes) {
    const ssize_t got = read(descriptor, to + filled, expected.bytes - filled);
    if (got <= 0) break;
    filled += static_cast<uint64_t>(got);
  }
  close(descriptor);
  if (filled != expected.bytes || io::Crc32c({to, filled}) != expected.crc) {
    throw Error(
        "{}: is not what its shard.json says (damaged, or copied in part); copy it again, or "
        "remove the folder and make the shard again",
        path);
  }
}

// Of the rows in `space`.
GroupedPartition Group(GroupingSpace& space, const SplitShares& shares) {
  SortKeys(space);
  const std::vector<PackedRow>& rows = space.rows;
  const std::vector<RowKey>& keys = space.sorted;
  Grouper grouper(shares, rows.size());
  std::vector<PackedRow> run;
  for (size_t begin = 0; begin < keys.size();) {
    if (begin % 65536 < 2) ThrowIfInterrupted();
    const uint64_t hash = keys[begin].hash;
    run.clear();
    for (; begin < keys.size() && keys[begin].hash == hash; ++begin) {
      if (begin + kAhead < keys.size()) Prefetch(rows[keys[begin + kAhead].row]);
      run.push_back(rows[keys[begin].row]);
    }
    std::sort(run.begin(), run.end(), RowBefore);
    for (size_t first = 0; first < run.size();) {
      size_t last = first + 1;
      while (last < run.size() && SamePosition(run[first].position, run[last].position)) ++last;
      grouper.Add(hash, {&run[first], last - first});
      first = last;
    }
  }
  return grouper.Take();
}

}  // namespace

GroupedPartition GroupRows(std::vector<PackedRow> rows, const SplitShares& shares) {
  GroupingSpace space;
  space.rows = std::move(rows);
  return Group(space, shares);
}

GroupedPartition GroupPartition(const std::vector<ShardState>& shards, size_t partition,
                                const SplitShares& shares, GroupingSpace& space) {
  uint64_t bytes = 0;
  for (const ShardState& shard : shards) bytes += shard.partitions[partition].bytes;
  CHECK(bytes % sizeof(PackedRow) == 0);
  Resize(space.rows, bytes / sizeof(PackedRow));
  char* to = reinterpret_cast<char*>(space.rows.data());
  for (const ShardState& shard : shards) {
    ReadInto(shard.PartitionPath(partition), shard.partitions[partition], to);
    to += shard.partitions[partition].bytes;
  }
  return Group(space, shares);
}

}  // namespace kibitz::policy
