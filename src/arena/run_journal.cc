#include "arena/run_journal.h"

#include <algorithm>
#include <filesystem>

namespace kibitz::arena {
namespace {

namespace fs = std::filesystem;

// Sorted.
std::vector<std::string> JournalsIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("journal") && name.ends_with(".jsonl")) {
      paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

std::string OwnPath(const JournalPlace& place) {
  if (place.slice.whole()) return place.folder + "/journal.jsonl";
  return fmt::format("{}/journal-{:04}-of-{:04}.jsonl", place.folder, place.slice.index,
                     place.slice.count);
}

}  // namespace

RunJournal::RunJournal(const JournalPlace& place, const Json& settings)
    : place_(place), settings_(settings) {
  MakeFolder(place_.folder);
  const bool first = place_.job == nullptr || place_.job->first();
  if (place_.fresh && first) {
    const WriteLock alone = WriteLock::OfFile(place_.folder + "/journal.jsonl");
    for (const std::string& path : JournalsIn(place_.folder)) fs::remove(path);
  }
  if (place_.job != nullptr) place_.job->Meet();
  if (shared()) lock_.emplace(WriteLock::ShareFile(place_.folder + "/journal.jsonl"));
  own_ = std::make_unique<io::Journal>(OwnPath(place_), settings_);
  ReadOthers();
  // Nobody goes on before all have read the same.
  if (place_.job != nullptr) place_.job->Meet();
}

const RunJournal::Json* RunJournal::Find(int64_t number) const {
  if (const Json* own = own_->Find(number)) return own;
  const auto found = results_.find(number);
  return found == results_.end() ? nullptr : &found->second;
}

void RunJournal::ReadOthers() {
  for (const std::string& path : JournalsIn(place_.folder)) {
    const bool known = std::ranges::any_of(
        others_, [&](const io::OtherJournal& other) { return other.path() == path; });
    if (!known && path != OwnPath(place_)) others_.emplace_back(path, settings_);
  }
  for (io::OtherJournal& other : others_) other.Read(results_);
}

void RunJournal::Exchange() {
  own_->Sync();
  if (!ranks()) throw ShardPlayed(place_.slice);
  place_.job->Meet();
  ReadOthers();
  place_.job->Meet();
}

}  // namespace kibitz::arena
