// The results of a run's pieces, from all processes that work on it: one, the ranks of a job, or
// runs of --shards. Each writes a journal of its own into the folder and reads those of the others.
//
//   RunJournal journal({.folder = "match"}, settings);
//   if (journal.Mine(number) && !journal.Find(number)) {
//     journal.Append(number, Play(number));
//   }
//   journal.Exchange();  // Ranks wait for each other; then all have all results.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/job_group.h"
#include "base/slice.h"
#include "base/write_lock.h"
#include "io/runs/journal.h"

namespace kibitz::arena {

struct JournalPlace {
  std::string folder;  // Made when missing.
  bool fresh = false;  // Discard what is there.
  Slice slice = {};
  JobGroup* job = nullptr;  // Null: no ranks.
};

// Thrown when a run of --shards has played its part: it has no report.
class ShardPlayed : public Error {
 public:
  explicit ShardPlayed(const Slice& slice)
      : Error("shard {} of {} is played", slice.index, slice.count) {}
};

class RunJournal {
 public:
  using Json = nlohmann::ordered_json;

  // Throws Error as io::Journal does.
  RunJournal(const JournalPlace& place, const Json& settings);

  // Null when nobody had it at the start or at the last exchange.
  const Json* Find(int64_t number) const;
  // From any thread.
  void Append(int64_t number, const Json& result) { own_->Append(number, result); }

  // Whether others work on the run.
  bool shared() const { return !place_.slice.whole(); }
  bool ranks() const { return place_.job != nullptr && place_.job->ranks() > 1; }
  int64_t processes() const { return place_.slice.count; }
  // Pairs of games stay together.
  bool Mine(int64_t number) const { return place_.slice.Has(number / 2); }
  // Waits until all ranks have come here, and reads what they have made. Throws ShardPlayed where
  // the others are no ranks.
  void Exchange();

 private:
  void ReadOthers();

  JournalPlace place_;
  Json settings_;
  std::optional<WriteLock> lock_;  // Against a run that is not shared.
  std::unique_ptr<io::Journal> own_;
  std::vector<io::OtherJournal> others_;
  std::map<int64_t, Json> results_;  // Of others.
};

}  // namespace kibitz::arena
