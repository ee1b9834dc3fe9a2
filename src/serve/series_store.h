// Series of games that were played: kept in memory, and in a folder where one is given, so that
// another server finds them.
//
//   SeriesStore store("results");
//   store.Put("20250101-120000-1", {{"games", 4}}, pgn);
//   for (const Json& each : store.List()) Use(each["id"]);
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "serve/jobs.h"

namespace kibitz::serve {

class SeriesStore {
 public:
  // Reads what the folder has; "": nothing is kept beyond this process. Files that are no summary
  // are passed over.
  explicit SeriesStore(std::string folder);

  // A new id: the time, and a number where two begin in one second.
  std::string NewId();
  // Adds or replaces it. Throws Error when the folder cannot be written.
  void Put(const std::string& id, Json summary, std::string pgn);

  // Newest first.
  std::vector<Json> List() const;
  // Throws Error::Usage when there is none.
  Json Summary(const std::string& id) const;
  std::string Pgn(const std::string& id) const;

 private:
  struct Entry {
    Json summary;
    std::string pgn;
  };
  const Entry& Find(const std::string& id) const;  // With mutex_ held.

  const std::string folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // By id; guarded by mutex_.
  std::string last_id_;                   // Guarded by mutex_.
  int repeated_ = 0;                      // Guarded by mutex_.
};

}  // namespace kibitz::serve
