#include "io/runs/journal.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "io/runs/locked_file.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kBetweenSyncs = std::chrono::milliseconds(200);
constexpr const char* kSettings = "settings";

std::string ToLine(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

namespace {

// Settings of earlier versions have no fingerprints of files and networks: drops those from `now`.
Json WithoutNewer(const Json& there, Json now) {
  if (there.is_object() && now.is_object()) {
    for (const char* key : {"hash", "network"}) {
      if (!there.contains(key)) now.erase(key);
    }
    for (auto& [key, value] : now.items()) {
      if (there.contains(key)) value = WithoutNewer(there[key], value);
    }
  } else if (there.is_array() && now.is_array()) {
    for (size_t i = 0; i < std::min(there.size(), now.size()); ++i) {
      now[i] = WithoutNewer(there[i], now[i]);
    }
  }
  return now;
}

}  // namespace

std::string SettingsDifference(const Json& there, const Json& given) {
  if (there == given) return "";
  const Json now = WithoutNewer(there, given);
  if (there == now) return "";
  const Json difference = Json::diff(there, now);
  if (difference.empty()) return "";  // The same keys in another order.
  const std::string key = difference.at(0).at("path").get<std::string>();
  const Json::json_pointer pointer(key);
  if (key.ends_with("/hash")) {
    const Json& file = now.at(pointer.parent_pointer());
    return fmt::format("the content of {} changed",
                       file.value("path", file.value("name", key.substr(0, key.size() - 5))));
  }
  const auto text = [&pointer](const Json& tree) {
    return tree.contains(pointer) ? Quoted(tree.at(pointer).dump()) : std::string("nothing");
  };
  return fmt::format("{} is {} there and {} now", key, text(there), text(now));
}

Journal::Journal(const std::string& path, const Json& settings, bool fresh)
    : path_(path), lock_(WriteLock::OfFile(path)), descriptor_(OpenLocked(path)) {
  try {
    if (fresh && ftruncate(descriptor_, 0) != 0) throw Error::System("cannot truncate " + path_);
    Read(settings);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

Journal::~Journal() {
  if (fsync(descriptor_) != 0) LogWarn("cannot sync {}", path_);
  close(descriptor_);
}

namespace {

// A whole line; the first one of a journal has its settings.
void TakeLine(const std::string& line, size_t number, const std::string& path, const Json& settings,
              std::map<int64_t, Json>& results) {
  const Json object = ParseJson(line);
  const bool first = number == 1;
  if (!object.is_object() || !object.contains(first ? kSettings : "number") ||
      (!first && (!object["number"].is_number_integer() || !object.contains("result")))) {
    throw Error(
        "{}, line {}: {} is no line of a journal; remove the line, or the file to start over", path,
        number, Quoted(line));
  }
  if (!first) {
    results.try_emplace(object["number"].get<int64_t>(), object["result"]);
    return;
  }
  const std::string difference = SettingsDifference(object[kSettings], settings);
  if (difference.empty()) return;
  throw Error(
      "{}: made with other options: {}; give the same options to resume, another --out, or "
      "--fresh to start over",
      path, difference);
}

}  // namespace

void Journal::Read(const Json& settings) {
  std::ifstream in(path_, std::ios::binary);
  if (!in.good()) throw Error::System("cannot read " + path_);
  std::string line;
  off_t end = 0;  // Of the whole lines.
  for (size_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
    TakeLine(line, number, path_, settings, results_);
    end += static_cast<off_t>(line.size()) + 1;
  }
  if (in.bad()) throw Error::System("cannot read " + path_);
  if (ftruncate(descriptor_, end) != 0) throw Error::System("cannot truncate " + path_);
  if (end == 0) WriteWhole(descriptor_, ToLine({{kSettings, settings}}), path_);
}

void Journal::Sync() {
  if (fsync(descriptor_) != 0) throw Error::System("cannot sync " + path_);
}

void OtherJournal::Read(std::map<int64_t, Json>& results) {
  std::ifstream in(path_, std::ios::binary);
  if (!in.good()) throw Error::System("cannot read " + path_);
  in.seekg(end_);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    TakeLine(line, ++lines_, path_, settings_, results);
    end_ += static_cast<std::streamoff>(line.size()) + 1;
  }
  if (in.bad()) throw Error::System("cannot read " + path_);
}

void WriteSettingsOnce(const std::string& path, const Json& settings) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!std::filesystem::exists(path)) {
    try {
      WriteFileAtomically(path, settings.dump(2) + "\n");
    } catch (const Error&) {  // Another process is at it.
      if (std::chrono::steady_clock::now() > until) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

const Json* Journal::Find(int64_t number) const {
  const auto found = results_.find(number);
  return found == results_.end() ? nullptr : &found->second;
}

void Journal::Append(int64_t number, const Json& result) {
  const std::string line = ToLine({{"number", number}, {"result", result}});
  const std::lock_guard lock(mutex_);
  WriteWhole(descriptor_, line, path_);
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < kBetweenSyncs) return;
  if (fsync(descriptor_) != 0) throw Error::System("cannot sync " + path_);
  synced_ = now;
}

}  // namespace kibitz::io
