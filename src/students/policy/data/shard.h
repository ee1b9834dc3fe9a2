// The first half of a precompute: packs the rows of a slice of the input and spreads them over
// files
// ("partitions") by the hash of their position. Shards of one input can be made on any machines, at
// any time; group.h sorts and groups them.
//
// A shard's folder holds part-0000.rows, ... and shard.json, its journal: the position in the
// input, and the length and checksum of each file. Every half minute the files are flushed and the
// journal is rewritten, so that a killed run loses no more than that.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "students/policy/data/append_file.h"
#include "students/policy/data/row_source.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {

// The input that a data set was made from; the same for all of its shards.
struct Fingerprint {
  std::vector<InputFile> files;  // By name without folder, size and content.
  uint64_t rows = 0;             // The limit; 0: none.

  nlohmann::ordered_json ToJson() const;
  // "" when two are of the same input; else the first difference, for people.
  static std::string Change(const nlohmann::ordered_json& before,
                            const nlohmann::ordered_json& now);
};

// A shard's journal.
struct ShardState {
  std::string folder;
  nlohmann::ordered_json fingerprint;
  uint64_t shards = 1;
  uint64_t shard = 0;
  bool done = false;
  uint64_t position = 0;  // Of RowSource.
  uint64_t rows = 0;      // Read so far.
  SkipCounter skipped;
  std::vector<FileState> partitions;  // A power of two of them.

  static bool Exists(const std::string& folder);
  // Throws Error.
  static ShardState Read(const std::string& folder);
  void Write() const;
  std::string PartitionPath(size_t partition) const;
};

// Which partition of `partitions`, a power of two, a hash belongs to: hashes of one partition lie
// below all of the next.
inline size_t PartitionOf(uint64_t hash, size_t partitions) {
  return partitions == 1 ? 0 : hash >> (64 - std::countr_zero(partitions));
}

// How many partitions an input of so many rows gets: a function of the input and --memory alone, so
// that shards from machines with different numbers of cores can be merged.
uint64_t PartitionsFor(uint64_t rows, uint64_t memory_bytes);

struct ShardOptions {
  uint64_t shards = 1;
  uint64_t shard = 0;
  uint64_t rows = 0;  // Max rows of the whole input; 0: all.
  int threads = 1;
  uint64_t memory_bytes = uint64_t{2} << 30;
  double flush_seconds = 30;
  // Sync to disk at the end: for shards that are kept. Others are only read once more, and their
  // checksums show what a power failure lost.
  bool durable = true;
  std::string scratch = {};  // As in RowSourceOptions.
  uint64_t piece_bytes = RowSourceOptions().piece_bytes;
};

// The folder of a shard: FOLDER/shard-0001-of-0005, say.
std::string ShardFolder(const std::string& folder, uint64_t shards, uint64_t shard);

// Makes the shard, resumes it, or finds it done. `fingerprint` is Fingerprint::ToJson of files and
// options. Throws Error: of kind kInterrupted after Ctrl-C, with the work so far kept.
ShardState MakeShard(const std::string& folder, const std::vector<InputFile>& files,
                     const nlohmann::ordered_json& fingerprint, const ShardOptions& options);

}  // namespace kibitz::policy
