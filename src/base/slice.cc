#include "base/slice.h"

#include <algorithm>

#include "base/error.h"

namespace kibitz {

Slice SliceOptions::In(const JobGroup& job) const {
  if (shard >= std::max<int64_t>(1, shards)) {
    throw Error::Usage("--shard is {} of {}; expected 0 to {}", shard, shards,
                       std::max<int64_t>(1, shards) - 1);
  }
  if (job.ranks() == 1) return {std::max<int64_t>(1, shards), shard};
  if (shards > 0) {
    throw Error::Usage("--shards is {}, but {} ranks share the work already; leave it out", shards,
                       job.ranks());
  }
  return {job.ranks(), job.rank()};
}

Fields FieldsOf(SliceOptions& options) {
  Fields fields;
  fields.Add("shards", options.shards,
             "do one of N parts of the work; afterwards the same command without it ends the run",
             {.min = 0, .max = 1'000'000, .metavar = "N"});
  fields.Add("shard", options.shard, "which part, from 0", {.min = 0, .metavar = "K"});
  return fields;
}

}  // namespace kibitz
