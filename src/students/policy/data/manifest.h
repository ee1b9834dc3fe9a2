// What a data set consists of: the layout of its files, and manifest.json with their lengths and
// checksums. The manifest is written last: without it there is no data set.
//
// Packed storage has three .npy files a split: positions (28 bytes each), analyses (12 bytes), and
// an index that says where the analyses of every 32nd position begin.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/skip_counter.h"
#include "io/tables/npy.h"
#include "students/policy/data/file_state.h"
#include "students/policy/data/split.h"

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
  uint64_t rows = 0;    // Read from the input.
  SkipCounter skipped;  // "left_out" in the file, see LeftOutToJson.
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

}  // namespace kibitz::policy
