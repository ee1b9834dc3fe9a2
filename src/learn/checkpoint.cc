#include "learn/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"

namespace kibitz::learn {
namespace {

namespace fs = std::filesystem;
using io::Value;

constexpr int64_t kVersion = 1;

Value Text(std::string text) { return Value::String(std::move(text)); }

}  // namespace

Value ToValue(const Checkpoint& checkpoint) {
  const Value own =
      Value::Dict({{Text("version"), Value::Int(kVersion)},
                   {Text("student"), checkpoint.student},
                   {Text("seconds"), Value::Float(checkpoint.seconds)},
                   {Text("best"), checkpoint.best ? Value::Float(*checkpoint.best) : Value()}});
  return Value::Dict({{Text("epoch"), Value::Int(checkpoint.epoch)},
                      {Text("step"), Value::Int(checkpoint.step)},
                      {Text("model_state_dict"), checkpoint.model},
                      {Text("optimizer_state_dict"), checkpoint.optimizer},
                      {Text("scaler_state_dict"), Value::Dict({})},
                      {Text("config"), io::FromTree(checkpoint.config)},
                      {Text("kibitz"), own}});
}

Checkpoint ReadCheckpoint(const std::string& path) {
  const Value root = io::ReadPt(path);
  const Value* own = root.Find("kibitz");
  if (own == nullptr) {
    throw Error(
        "{}: not a checkpoint that a run can go on with (no \"kibitz\" entry); to start from "
        "its weights, name it as training.pretrain_checkpoint",
        path);
  }
  if (const int64_t version = own->Get("version").AsInt(); version != kVersion) {
    throw Error("{}: checkpoint version {}, this program knows {}", path, version, kVersion);
  }
  const Value& best = own->Get("best");
  return {.epoch = root.Get("epoch").AsInt(),
          .step = root.Get("step").AsInt(),
          .model = root.Get("model_state_dict"),
          .optimizer = root.Get("optimizer_state_dict"),
          .config = io::ToTree(root.Get("config")),
          .student = own->Get("student"),
          .seconds = own->Get("seconds").AsDouble(),
          .best = best.Is(Value::Kind::kNone) ? std::nullopt : std::optional(best.AsDouble())};
}

RunFolder::RunFolder(std::string path, const RunFolderOptions& options)
    : path_(std::move(path)), options_(options) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error("cannot make the folder {}: {}", path_, error.message());
}

std::vector<std::string> RunFolder::All() const {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("checkpoint_step_") && name.ends_with(".pt")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<std::string> RunFolder::Last() const {
  std::vector<std::string> files = All();
  if (files.empty()) return std::nullopt;
  return std::move(files.back());
}

std::string RunFolder::Save(const Checkpoint& checkpoint, bool best) {
  std::string path = File(fmt::format("checkpoint_step_{:09}.pt", checkpoint.step));
  io::WritePt(path, ToValue(checkpoint));
  if (best) {
    // A second name for the same file, put in place by a rename.
    const std::string aside = File("best.pt.tmp");
    fs::remove(aside);
    fs::create_hard_link(path, aside);
    fs::rename(aside, File("best.pt"));
  }
  const std::vector<std::string> files = All();
  const auto keep = static_cast<size_t>(options_.keep);
  for (size_t i = 0; keep > 0 && i + keep < files.size(); ++i) fs::remove(files[i]);
  return path;
}

}  // namespace kibitz::learn
