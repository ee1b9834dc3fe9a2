#include "students/policy/data/manifest.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using io::DType;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

}  // namespace

const io::NpyLayout& PositionLayout() {
  static const io::NpyLayout layout = io::NpyLayout::Packed({{"occupied", DType::kU32, {2}},
                                                             {"pieces", DType::kU8, {16}},
                                                             {"state", DType::kU8},
                                                             {"en_passant", DType::kU8},
                                                             {"analyses", DType::kU16}});
  return layout;
}

const io::NpyLayout& AnalysisLayout() {
  static const io::NpyLayout layout = io::NpyLayout::Packed({{"knodes", DType::kU32},
                                                             {"score", DType::kI32},
                                                             {"move", DType::kU16},
                                                             {"depth_mate", DType::kU16}});
  return layout;
}

std::string_view NameOf(Storage storage) {
  return storage == Storage::kPacked ? "packed" : "planes";
}

bool Manifest::Exists(const std::string& folder) { return fs::exists(PathIn(folder)); }

uint64_t Manifest::positions() const {
  uint64_t sum = 0;
  for (const SplitCounts& split : splits) sum += split.positions;
  return sum;
}

uint64_t Manifest::analyses() const {
  uint64_t sum = 0;
  for (const SplitCounts& split : splits) sum += split.analyses;
  return sum;
}

Manifest Manifest::Read(const std::string& folder) {
  const std::string path = PathIn(folder);
  const Json json = LoadConfig(path).tree;
  Manifest manifest;
  try {
    if (json.at("format").get<int>() != kFormat) {
      throw Error("{}: format {}, expected {}; make the data set again", path,
                  json.at("format").dump(), kFormat);
    }
    manifest.storage = json.at("storage").get<std::string>() == NameOf(Storage::kPlanes)
                           ? Storage::kPlanes
                           : Storage::kPacked;
    manifest.input = json.at("input");
    manifest.shares = {json.at("val_share").get<double>(), json.at("test_share").get<double>()};
    manifest.rows = json.at("rows").get<uint64_t>();
    manifest.skipped = LeftOutFrom(json.at("left_out"));
    for (Split split : kSplits) {
      const Json& counts = json.at("splits").at(std::string(NameOf(split)));
      manifest.splits[static_cast<size_t>(split)] = {counts.at("positions").get<uint64_t>(),
                                                     counts.at("analyses").get<uint64_t>()};
    }
    for (const auto& [name, state] : json.at("files").items()) {
      manifest.files.emplace_back(name, FileStateFrom(state, path));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: {}; make the data set again", path, error.what());
  }
  return manifest;
}

void Manifest::Write(const std::string& folder) const {
  Json counts = Json::object();
  for (Split split : kSplits) {
    const SplitCounts& of = splits[static_cast<size_t>(split)];
    counts[std::string(NameOf(split))] = {{"positions", of.positions}, {"analyses", of.analyses}};
  }
  Json list = Json::object();
  for (const auto& [name, state] : files) list[name] = ToJson(state);
  const Json json = {{"format", kFormat},
                     {"storage", NameOf(storage)},
                     {"input", input},
                     {"val_share", shares.val},
                     {"test_share", shares.test},
                     {"rows", rows},
                     {"left_out", LeftOutToJson(skipped)},
                     {"splits", counts},
                     {"files", list}};
  WriteFileAtomically(PathIn(folder), json.dump(1) + "\n");
}

}  // namespace kibitz::policy
