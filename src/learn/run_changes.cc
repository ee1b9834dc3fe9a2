#include "learn/run_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "io/bytes/fingerprint.h"

namespace kibitz::learn {
namespace {

using Json = nlohmann::ordered_json;

// Options that shape neither weights nor data: a resume may change them.
constexpr std::array<std::string_view, 19> kFree = {"run_name",
                                                    "project_name",
                                                    "fresh",
                                                    "strict",
                                                    "init",
                                                    "training.pretrain_checkpoint",
                                                    "training.max_seconds",
                                                    "training.log_every_n_steps",
                                                    "training.save_every_n_steps",
                                                    "training.validate_every_n_steps",
                                                    "training.keep_checkpoints",
                                                    "training.checkpoint_dir",
                                                    "training.log_command",
                                                    "training.threads",
                                                    "training.device",
                                                    "training.gradient_checkpointing",
                                                    "training.embedding_std",
                                                    "data.loader_threads",
                                                    "data.num_workers"};

bool IsData(std::string_view key) {
  return key.ends_with("_dir") && key != "training.checkpoint_dir";
}

// Leaves by name: "training.seed" -> 42.
void Flatten(const Json& tree, const std::string& prefix, std::map<std::string, Json>& leaves) {
  for (const auto& [key, value] : tree.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      Flatten(value, name, leaves);
    } else {
      leaves[name] = value;
    }
  }
}

std::map<std::string, Json> LeavesOf(const Json& config) {
  std::map<std::string, Json> leaves;
  Flatten(config, "", leaves);
  return leaves;
}

// How long the run is matters only where the learning rate depends on it.
bool IsFree(const std::string& key, const std::map<std::string, Json>& config) {
  if (IsData(key) || std::ranges::find(kFree, key) != kFree.end()) return true;
  if (key != "training.max_steps" && key != "training.num_epochs") return false;
  const auto schedule = config.find("training.schedule");
  return schedule == config.end() || schedule->second == "constant";
}

}  // namespace

Json DataFingerprints(const Json& config) {
  Json all = Json::object();
  for (const auto& [key, value] : LeavesOf(config)) {
    if (!IsData(key) || !value.is_string() || value.get<std::string>().empty()) continue;
    const std::string path = value.get<std::string>();
    if (std::filesystem::exists(path)) all[key] = io::FingerprintOf(path);
  }
  return all;
}

std::vector<std::string> ChangesSince(const RunInputs& before, const RunInputs& now) {
  std::vector<std::string> changes;
  const auto then = LeavesOf(before.config);
  const auto here = LeavesOf(now.config);
  for (const auto& [key, value] : here) {
    const auto found = then.find(key);  // Earlier versions had fewer options.
    if (found == then.end() || found->second == value || IsFree(key, here)) continue;
    changes.push_back(
        fmt::format("{} was {} and is {} now", key, found->second.dump(), value.dump()));
  }
  if (!before.data.is_object()) return changes;
  for (const auto& [key, value] : now.data.items()) {
    if (!before.data.contains(key)) {
      changes.push_back(key + " is new");
      continue;
    }
    Json renamed = before.data[key];
    renamed["name"] = value["name"];  // A folder may move.
    const std::string change = io::FingerprintChange(renamed, value);
    if (!change.empty()) changes.push_back(fmt::format("{}: {}", key, change));
  }
  return changes;
}

}  // namespace kibitz::learn
