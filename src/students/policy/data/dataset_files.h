// The files of a data set, and their writer. Per split: positions (28 bytes each), analyses (12
// bytes), and an index that says where the analyses of every 32nd position begin. All are .npy;
// manifest.json has their lengths and checksums and is written last: without it there is no data
// set.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "students/policy/data/append_file.h"
#include "students/policy/data/group.h"

namespace kibitz::policy {

inline constexpr uint64_t kIndexStep = 32;

const io::NpyLayout& PositionLayout();
const io::NpyLayout& AnalysisLayout();

enum class Storage : uint8_t { kPacked, kPlanes };
std::string_view NameOf(Storage storage);  // "packed", "planes"

struct SplitCounts {
  uint64_t positions = 0;
  uint64_t analyses = 0;
};

struct Manifest {
  Storage storage = Storage::kPacked;
  nlohmann::ordered_json input;  // Fingerprint.
  SplitShares shares;
  uint64_t rows = 0;  // Read from the input.
  Tally tally;
  std::array<SplitCounts, kSplits.size()> splits;
  // By name; the checksum is of the data behind the header.
  std::vector<std::pair<std::string, FileState>> files;

  static std::string PathIn(const std::string& folder) { return folder + "/manifest.json"; }
  static bool Exists(const std::string& folder);
  // Throws Error.
  static Manifest Read(const std::string& folder);
  void Write(const std::string& folder) const;

  uint64_t positions() const;
  uint64_t analyses() const;
};

// Writes packed rows partition by partition, in a folder of its own, and goes on where a killed run
// stopped: journal.json there has the state after the last flush.
class PackedWriter {
 public:
  // `identity` names what is being written; a journal of something else is discarded, and so is one
  // whose files are damaged.
  PackedWriter(std::string folder, nlohmann::ordered_json identity, double flush_seconds = 30);

  // The partition to begin with, and what those before it left out.
  size_t next_partition() const { return next_partition_; }
  const Tally& tally() const { return tally_; }

  // The next partition. Flushes now and then.
  void Append(const GroupedPartition& partition);
  // Headers and all on disk; moves the files into `folder` and writes the manifest, whose counts
  // and files are filled in.
  void Finish(const std::string& folder, Manifest manifest);

 private:
  struct SplitFiles {
    AppendFile positions;
    AppendFile analyses;
    AppendFile index;
  };

  bool Resume();
  void Begin();
  void Flush();
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  static std::string Name(Split split, std::string_view part);

  std::string folder_;
  nlohmann::ordered_json identity_;
  size_t next_partition_ = 0;
  double flush_seconds_;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
  Tally tally_;
  std::array<SplitCounts, kSplits.size()> counts_;
  std::vector<SplitFiles> files_;  // By Split. States are of the data; the header comes before.
};

}  // namespace kibitz::policy
