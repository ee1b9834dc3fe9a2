// Checks a data set: checksums, order, ranges, invalid positions, duplicates, illegal moves. Also
// counts how deep its analyses are and how many labels are soft.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "students/policy/data/dataset.h"

namespace kibitz::policy {

struct VerifyOptions {
  bool checksums = true;           // Read every byte again.
  uint64_t legal_sample = 10'000;  // Positions of each split whose moves are checked.
  uint64_t seed = 0;               // Which ones.
};

// One kind of fault: its count, and the first place.
struct Finding {
  uint64_t count = 0;
  std::string first;
};

struct VerifyReport {
  std::map<std::string, Finding> faults;  // By kind; empty when all is good.
  std::array<SplitCounts, kSplits.size()> splits;
  uint64_t legal_checked = 0;  // Analyses whose move was checked to be legal.
  // Positions by the depth of their deepest analysis; 0: without one.
  std::map<int, uint64_t> deepest;
  uint64_t soft = 0;  // Positions with two moves or more at their greatest depth ...
  uint64_t hard = 0;  // ... and with one.

  bool good() const { return faults.empty(); }
  // Positions whose deepest analysis has at least this depth, as --min-depth chooses them.
  uint64_t AtLeast(int depth) const;
};

// Reads all of it. Throws Error where files cannot be read at all, and after Ctrl-C.
VerifyReport Verify(const Dataset& data, const VerifyOptions& options);

}  // namespace kibitz::policy
