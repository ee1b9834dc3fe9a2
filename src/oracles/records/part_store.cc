#include "oracles/records/part_store.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "io/bytes/byte_sink.h"
#include "io/runs/journal.h"

namespace kibitz::oracles {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".jsonl.zst";

bool IsPart(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("part-") && name.ends_with(kEnding);
}

std::vector<std::string> PartsIn(const std::string& folder) {
  std::vector<std::string> parts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (IsPart(entry.path())) parts.push_back(entry.path().string());
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

}  // namespace

PartStore::PartStore(std::string out, Json options, bool fresh, const Slice& slice)
    : out_(std::move(out)),
      slice_(slice),
      lock_(slice.whole() ? WriteLock::OfFile(out_) : WriteLock::ShareFile(out_)),
      folder_(out_ + ".parts"),
      options_(std::move(options)) {
  if (fresh) {
    fs::remove_all(folder_);
    fs::remove(out_ + ".json");
    fs::remove(out_);
  }
  finished_ = LookAtOutput();
  if (!finished_) OpenFolder();
}

bool PartStore::LookAtOutput() {
  const std::string note = out_ + ".json";
  if (fs::exists(note)) {
    const Config config = LoadConfig(note);
    if (!config.tree.contains("settings")) {
      throw Error("{}: does not say how {} was made; remove it or choose another --out", note,
                  out_);
    }
    CheckOptions(config.tree["settings"], note);
    if (!fs::exists(out_)) return false;
    if (config.tree.contains("summary")) summary_ = config.tree["summary"];
    return true;
  }
  if (fs::exists(out_) && !fs::exists(folder_)) {
    throw Error(
        "{}: the file exists and was not made by this command; remove it, choose "
        "another --out, or give --fresh to replace it",
        out_);
  }
  return false;
}

void PartStore::OpenFolder() {
  const std::string note = folder_ + "/settings.json";
  MakeFolder(folder_);
  if (!fs::exists(note) && !PartsIn(folder_).empty()) {
    throw Error("{}: parts without a settings.json; remove the folder or give --fresh", folder_);
  }
  io::WriteSettingsOnce(note, options_);
  CheckOptions(LoadConfig(note).tree, note);
  kept_ = static_cast<int64_t>(PartsIn(folder_).size());
}

void PartStore::CheckOptions(const Json& found, const std::string& place) const {
  const std::string difference = io::SettingsDifference(found, options_);
  if (difference.empty()) return;
  throw Error(
      "{}: made with other options: {}; give the same options to resume, another --out, or --fresh "
      "to start over",
      place, difference);
}

std::string PartStore::PathOf(int64_t part) const {
  return fmt::format("{}/part-{:08}{}", folder_, part, kEnding);
}

bool PartStore::Has(int64_t part) const { return fs::exists(PathOf(part)); }

bool PartStore::Needs(int64_t part) const { return slice_.Has(part) && !Has(part); }

void PartStore::Write(int64_t part, std::span<const Json> units) const {
  io::ByteSink sink(PathOf(part));
  for (const Json& unit : units) sink.Write(unit.dump() + "\n");
  sink.Commit();
}

void PartStore::ForEachUnit(const std::function<void(const io::JsonLine&)>& use) const {
  for (const std::string& path : PartsIn(folder_)) {
    io::JsonLines lines(path, {.max_line_bytes = size_t{64} << 20});
    while (const io::JsonLine* line = lines.Next()) {
      ThrowIfInterrupted();
      if (!line->ok()) throw Error("{}; remove the file to make this part again", line->problem());
      use(*line);
    }
  }
}

void PartStore::Finish(const Json& summary) {
  summary_ = summary;
  const Json note = {{"settings", options_}, {"summary", summary}};
  WriteFileAtomically(out_ + ".json", note.dump(2) + "\n");
  fs::remove_all(folder_);
  finished_ = true;
}

}  // namespace kibitz::oracles
