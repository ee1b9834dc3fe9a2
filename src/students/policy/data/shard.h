// The first half of a precompute: rows of a slice of the input, packed and spread over files by the
// hash of their position ("partitions"). Shards of one input can be made anywhere and at any time;
// what puts them together is group.h.
//
// A shard's folder holds part-0000.rows, ... and shard.json, its journal: how far it came, and the
// length and checksum of each file. Every half minute the files are flushed and the journal is
// written anew, so that a killed run loses no more than that.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "students/policy/data/append_file.h"
#include "students/policy/data/row_source.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {

// What a data set was made from; the same for all of its shards.
struct Fingerprint {
  std::vector<InputFile> files;  // By name without folder, and size.
  uint64_t rows = 0;             // The limit; 0: none.

  nlohmann::ordered_json ToJson() const;
};

// A shard as its journal has it.
struct ShardState {
  std::string folder;
  nlohmann::ordered_json fingerprint;
  uint64_t shards = 1;
  uint64_t shard = 0;
  bool done = false;
  uint64_t position = 0;  // Of RowSource.
  uint64_t rows = 0;      // Read so far.
  Tally tally;
  std::vector<FileState> partitions;  // A power of two of them.

  static bool Exists(const std::string& folder);
  // Throws Error.
  static ShardState Read(const std::string& folder);
  void Write() const;
  std::string PartitionPath(size_t partition) const;
};

nlohmann::ordered_json ToJson(const Tally& tally);
Tally TallyFrom(const nlohmann::ordered_json& json);

// Which partition of `partitions`, a power of two, a hash belongs to: hashes of one partition lie
// below all of the next.
inline size_t PartitionOf(uint64_t hash, size_t partitions) {
  return partitions == 1 ? 0 : hash >> (64 - std::countr_zero(partitions));
}

struct ShardOptions {
  uint64_t shards = 1;
  uint64_t shard = 0;
  uint64_t rows = 0;  // The first so many of the input only; 0: all.
  int threads = 1;
  uint64_t memory_bytes = uint64_t{2} << 30;
  double flush_seconds = 30;
  // On disk when it is done, power failures included: for shards that are kept. Others would only
  // be read again; what was lost shows in the checksums.
  bool durable = true;
};

// Makes the shard, or goes on where it stopped, or finds it done. Throws Error: of kind
// kInterrupted after Ctrl-C, with all done so far kept.
ShardState MakeShard(const std::string& folder, const std::vector<InputFile>& files,
                     const ShardOptions& options);

}  // namespace kibitz::policy
