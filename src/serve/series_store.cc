#include "serve/series_store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/write_lock.h"

namespace kibitz::serve {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

SeriesStore::SeriesStore(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    Json summary = ParseJson(ReadAll(entry->path()));
    if (!summary.is_object()) continue;
    fs::path pgn = entry->path();
    pgn.replace_extension(".pgn");
    entries_[entry->path().stem().string()] = {std::move(summary), ReadAll(pgn)};
  }
}

std::string SeriesStore::NewId() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::lock_guard lock(mutex_);
  const std::string id =
      fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  repeated_ = id == last_id_ ? repeated_ + 1 : 0;
  last_id_ = id;
  return repeated_ == 0 ? id : fmt::format("{}-{}", id, repeated_);
}

void SeriesStore::Put(const std::string& id, Json summary, std::string pgn) {
  if (!folder_.empty()) {
    MakeFolder(folder_);
    WriteFileAtomically(folder_ + "/" + id + ".pgn", pgn);
    WriteFileAtomically(folder_ + "/" + id + ".json", Dump(summary) + "\n");
  }
  const std::lock_guard lock(mutex_);
  entries_[id] = {std::move(summary), std::move(pgn)};
}

std::vector<Json> SeriesStore::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> list;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    Json summary = entry->second.summary;
    summary["id"] = entry->first;
    list.push_back(std::move(summary));
  }
  return list;
}

const SeriesStore::Entry& SeriesStore::Find(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) throw Error::Usage("there is no series {}", Quoted(id));
  return found->second;
}

Json SeriesStore::Summary(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return Find(id).summary;
}

std::string SeriesStore::Pgn(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return Find(id).pgn;
}

}  // namespace kibitz::serve
