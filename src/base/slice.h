// Numbered pieces of work, dealt out to several processes: the ranks of a job (job_group.h), or
// runs of --shards and --shard.
//
//   const Slice slice = options.In(job);
//   for (int64_t part = 0; part < parts; ++part) {
//     if (slice.Has(part)) Make(part);
//   }
#pragma once

#include <cstdint>

#include "base/job_group.h"
#include "base/options.h"

namespace kibitz {

// Every count-th piece, from `index` on.
struct Slice {
  int64_t count = 1;
  int64_t index = 0;

  bool whole() const { return count == 1; }
  bool Has(int64_t number) const { return number % count == index; }
  bool operator==(const Slice&) const = default;
};

struct SliceOptions {
  int64_t shards = 0;  // 0: all of it, or by the ranks of the job.
  int64_t shard = 0;

  // Whether others do the rest at other times, so that this process cannot end the work.
  bool alone() const { return shards > 1; }
  // Throws Error::Usage where --shard is out of range or ranks do the same.
  Slice In(const JobGroup& job) const;
};
Fields FieldsOf(SliceOptions& options);

}  // namespace kibitz
