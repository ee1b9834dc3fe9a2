// Writes the files of a packed data set (manifest.h).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "students/policy/data/append_file.h"
#include "students/policy/data/group.h"
#include "students/policy/data/manifest.h"

namespace kibitz::policy {

// A split has three files: positions, analyses, index.
struct PackedFile {
  std::string name;  // "train_positions.npy"
  const io::NpyLayout& layout;

  std::string Header(uint64_t rows) const;
};
std::array<PackedFile, 3> FilesOf(Split split);

// Appends where the analyses of every 32nd position begin; `counts` is what came before.
void AddIndex(std::span<const PackedPosition> positions, SplitCounts& counts,
              std::vector<uint64_t>& index);

// Moves finished files into `folder` and writes vocabulary and manifest.
void PutInPlace(const std::string& from, const std::string& folder, const Manifest& manifest);

// Writes packed rows partition by partition, in a folder of its own, and resumes a killed run:
// journal.json there has the state after the last flush.
class PackedWriter {
 public:
  // `identity` names what is being written; a journal of something else is discarded, and so is one
  // whose files are damaged.
  PackedWriter(std::string folder, nlohmann::ordered_json identity, double flush_seconds = 30);

  // The partition to begin with, and what was skipped in those before it.
  size_t next_partition() const { return next_partition_; }
  const SkipCounter& skipped() const { return skipped_; }
  // Written so far.
  uint64_t analyses() const;

  // The next partition. Flushes every `flush_seconds`.
  void Append(const GroupedPartition& partition);
  // Writes the headers, syncs, moves the files into `folder` and writes the manifest, whose counts
  // and files are filled in.
  void Finish(const std::string& folder, Manifest manifest);
  // Instead: the files stay here, as a part for packed_parts.h. They are read only once more, so
  // that nothing is synced; checksums show what a power failure lost.
  void Close();

 private:
  struct SplitFiles {
    AppendFile positions;
    AppendFile analyses;
    AppendFile index;
  };

  bool Resume();
  void Begin();
  void Flush();
  void WriteJournal();
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  nlohmann::ordered_json identity_;
  size_t next_partition_ = 0;
  double flush_seconds_;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
  SkipCounter skipped_;
  std::array<SplitCounts, kSplits.size()> counts_;
  std::vector<SplitFiles> files_;  // By Split. States are of the data behind the header.
};

}  // namespace kibitz::policy
