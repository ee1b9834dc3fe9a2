#include "learn/checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/write_lock.h"
#include "io/weights/run_checkpoints.h"
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
                   {Text("data"), io::FromTree(checkpoint.data)},
                   {Text("changes"), io::FromTree(checkpoint.changes)},
                   {Text("seconds"), Value::Float(checkpoint.seconds)},
                   {Text("best"), checkpoint.best ? Value::Float(*checkpoint.best) : Value()},
                   {Text("validation_owed"), Value::Bool(checkpoint.validation_owed)}});
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
        "{}: no run can resume from this file (it has no \"kibitz\" entry); to start from its "
        "weights, move it out of the run's folder and give it as --init or --pretrain-checkpoint",
        path);
  }
  if (const int64_t version = own->Get("version").AsInt(); version != kVersion) {
    throw Error("{}: checkpoint version {}, this program knows {}", path, version, kVersion);
  }
  const Value& best = own->Get("best");
  const Value* data = own->Find("data");
  const Value* changes = own->Find("changes");
  const Value* owed = own->Find("validation_owed");  // Earlier versions have none.
  return {.epoch = root.Get("epoch").AsInt(),
          .step = root.Get("step").AsInt(),
          .model = root.Get("model_state_dict"),
          .optimizer = root.Get("optimizer_state_dict"),
          .config = io::ToTree(root.Get("config")),
          .student = own->Get("student"),
          .data = data != nullptr ? io::ToTree(*data) : nlohmann::ordered_json(),
          .changes = changes != nullptr ? io::ToTree(*changes).get<std::vector<std::string>>()
                                        : std::vector<std::string>(),
          .seconds = own->Get("seconds").AsDouble(),
          .best = best.Is(Value::Kind::kNone) ? std::nullopt : std::optional(best.AsDouble()),
          .validation_owed = owed != nullptr && owed->AsBool()};
}

RunFolder::RunFolder(std::string path, const RunFolderOptions& options)
    : path_(std::move(path)), options_(options) {
  MakeFolder(path_);
}

std::optional<Checkpoint> RunFolder::ReadNewest(std::optional<std::string>& path) const {
  const std::vector<std::string> files = io::ListCheckpoints(path_);
  std::optional<Error> first;
  for (size_t i = files.size(); i-- > 0;) {
    try {
      Checkpoint checkpoint = ReadCheckpoint(files[i]);
      path = files[i];
      return checkpoint;
    } catch (const Error& error) {
      if (!first) first = error;
      if (i > 0) LogWarn("{}; resuming from the checkpoint before it", error.message());
    }
  }
  if (first) throw *first;
  return std::nullopt;
}

bool RunFolder::HasBest() const { return fs::exists(File("best.pt")); }

void RunFolder::NameBest(const std::string& checkpoint) {
  const std::string temporary = File("best.pt.tmp");
  fs::remove(temporary);
  fs::create_hard_link(checkpoint, temporary);
  fs::rename(temporary, File("best.pt"));
}

std::string RunFolder::Save(const Checkpoint& checkpoint, bool best) {
  std::string path = File(fmt::format("checkpoint_step_{:09}.pt", checkpoint.step));
  io::WritePt(path, ToValue(checkpoint));
  if (best) NameBest(path);
  const std::vector<std::string> files = io::ListCheckpoints(path_);
  const auto keep = static_cast<size_t>(options_.keep);
  for (size_t i = 0; keep > 0 && i + keep < files.size(); ++i) fs::remove(files[i]);
  return path;
}

}  // namespace kibitz::learn
