// Results of numbered pieces of work, a JSON line each, appended as they come. After a kill the
// same command reads them back and goes on: only the pieces in progress are lost.
//
//   Journal journal("match/journal.jsonl", settings);
//   for (int64_t game = 0; game < games; ++game) {
//     if (journal.Find(game) == nullptr) journal.Append(game, Play(game));
//   }
//
// The first line holds the settings that the results depend on. A journal of other settings is
// refused. docs/FORMATS.md has the layout.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "base/write_lock.h"

namespace kibitz::io {

// The first difference between two trees of settings, for people: "/options/depth is 3 there and 4
// now", "the content of games.pgn changed"; "" when they are equal. Files are described by their
// fingerprints (io/bytes/fingerprint.h), which settings of earlier versions lack.
std::string SettingsDifference(const nlohmann::ordered_json& there,
                               const nlohmann::ordered_json& now);
// Writes a file of settings unless it is there; several processes may do so at once.
void WriteSettingsOnce(const std::string& path, const nlohmann::ordered_json& settings);

class Journal {
 public:
  using Json = nlohmann::ordered_json;

  // Takes the lock of the file first. Throws Error when the file is of other settings, written by
  // another process, or damaged. A last line without its end was being written at a kill: it is
  // dropped. `fresh` discards the results of an existing file, whatever its settings.
  Journal(const std::string& path, const Json& settings, bool fresh = false);
  // Syncs to disk.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Null when there is none. Results found at the start stay valid and unchanged; those appended
  // later are not kept in memory.
  const Json* Find(int64_t number) const;
  // Results found at the start.
  int64_t kept() const { return static_cast<int64_t>(results_.size()); }

  // The line is written before this returns, so that a kill of this process cannot lose it. The
  // disk has it within a fifth of a second of further appends, and when the journal is closed. From
  // any thread.
  void Append(int64_t number, const Json& result);
  // Everything appended so far is on disk.
  void Sync();

 private:
  void Read(const Json& settings);

  const std::string path_;
  const WriteLock lock_;
  int descriptor_ = -1;
  std::map<int64_t, Json> results_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point synced_ = {};  // Guarded by mutex_.
};

// A journal that another process writes.
class OtherJournal {
 public:
  // The settings it must have.
  OtherJournal(std::string path, nlohmann::ordered_json settings)
      : path_(std::move(path)), settings_(std::move(settings)) {}

  const std::string& path() const { return path_; }
  // Adds the results since the last call; a line that is being written is left for the next. Throws
  // Error as Journal does.
  void Read(std::map<int64_t, nlohmann::ordered_json>& results);

 private:
  std::string path_;
  nlohmann::ordered_json settings_;
  size_t lines_ = 0;
  std::streamoff end_ = 0;  // Of the lines read.
};

}  // namespace kibitz::io
