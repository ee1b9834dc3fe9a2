// Joins the parts that the ranks of a job have sorted (PackedWriter::Close) into one data set. A
// file of the data set is its header and the parts' files in a row; every rank writes an equal
// range of it. Ranges begin at multiples of a megabyte, so that no two ranks write the same page.
//
//   JoinParts({ReadPart("work/part-0"), ReadPart("work/part-1")}, "work/joined", out, manifest,
//   job);
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/job_group.h"
#include "base/skip_counter.h"
#include "students/policy/data/manifest.h"

namespace kibitz::policy {

struct PackedPart {
  std::string folder;
  std::array<SplitCounts, kSplits.size()> counts;  // By Split.
  SkipCounter skipped;
  std::map<std::string, FileState> files;  // By name.
};
// From its journal. Throws Error.
PackedPart ReadPart(const std::string& folder);

// One part for each rank, all finished; all ranks call it. `work` is an empty folder on the storage
// of `out`. Counts and files of the manifest are filled in.
void JoinParts(const std::vector<PackedPart>& parts, const std::string& work,
               const std::string& out, Manifest manifest, JobGroup& job);

}  // namespace kibitz::policy
