#include "io/runs/journal.h"

#include <unistd.h>

#include <fstream>

#include "base/error.h"
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

std::string SettingsDifference(const Json& there, const Json& now) {
  if (there == now) return "";
  const Json difference = Json::diff(there, now);
  const std::string key = difference.at(0).at("path").get<std::string>();
  const Json::json_pointer pointer(key);
  const auto text = [&pointer](const Json& tree) {
    return tree.contains(pointer) ? Quoted(tree.at(pointer).dump()) : std::string("nothing");
  };
  return fmt::format("{} is {} there and {} now", key, text(there), text(now));
}

Journal::Journal(const std::string& path, const Json& settings)
    : path_(path), descriptor_(OpenLocked(path)) {
  try {
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

void Journal::Read(const Json& settings) {
  std::ifstream in(path_, std::ios::binary);
  if (!in.good()) throw Error::System("cannot read " + path_);
  std::string line;
  off_t end = 0;  // Of the whole lines.
  for (size_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
    const Json object = Json::parse(line, nullptr, false);
    const bool first = number == 1;
    if (!object.is_object() || !object.contains(first ? kSettings : "number") ||
        (!first && (!object["number"].is_number_integer() || !object.contains("result")))) {
      throw Error(
          "{}, line {}: {} is no line of a journal; remove the line, or the file to start over",
          path_, number, Quoted(line));
    }
    if (first) {
      const std::string difference = SettingsDifference(object[kSettings], settings);
      if (!difference.empty()) {
        throw Error(
            "{}: made with other options: {}; give the same options to resume, another --out, or "
            "--fresh to start over",
            path_, difference);
      }
    } else {
      results_[object["number"].get<int64_t>()] = object["result"];
    }
    end += static_cast<off_t>(line.size()) + 1;
  }
  if (in.bad()) throw Error::System("cannot read " + path_);
  if (ftruncate(descriptor_, end) != 0) throw Error::System("cannot truncate " + path_);
  if (end == 0) WriteWhole(descriptor_, ToLine({{kSettings, settings}}), path_);
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
