#include "io/weights/model_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/shipped.h"
#include "base/write_lock.h"
#include "io/weights/convert_weights.h"
#include "io/weights/lc0_file.h"
#include "io/weights/run_checkpoints.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"

namespace kibitz::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kWeightsName = "model.safetensors";
constexpr const char* kConfigName = "config.json";

// " (it has a.pt, b.pt)", for a folder that holds weights under other names.
std::string OtherWeights(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool weights = name.ends_with(".pt") || name.ends_with(".safetensors") ||
                         name.ends_with(".pb.gz") || name.ends_with(".pb");
    if (weights) names.push_back(name);
  }
  if (names.empty()) return "";
  std::ranges::sort(names);
  constexpr size_t kShown = 3;
  if (names.size() > kShown) {
    names.resize(kShown);
    names.emplace_back("...");
  }
  return fmt::format(" (it has {})", fmt::join(names, ", "));
}

// By its path in the repository, "models/policy-small", or by its name, "policy-small".
std::optional<std::string> ShippedModel(const std::string& path) {
  if (auto found = FindShipped(path)) return found;
  return FindShipped("models/" + path);
}

std::string HeadOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error::System("cannot read " + path);
  std::string head(16, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

ModelFormat FormatOf(const std::string& path) {
  const std::string head = HeadOf(path);
  if (head.starts_with("PK")) return ModelFormat::kTorch;
  if (head.size() > 8 && head[7] == '\0' && head[8] == '{') return ModelFormat::kSafetensors;
  if (path.ends_with(".safetensors")) return ModelFormat::kSafetensors;
  if (path.ends_with(".pb.gz") || path.ends_with(".pb")) return ModelFormat::kLc0;
  if (path.ends_with(".pt")) return ModelFormat::kTorch;
  if (head.empty()) throw Error("{}: is empty, expected a model; fetch or write it again", path);
  return IsLc0File(path) ? ModelFormat::kLc0 : ModelFormat::kTorch;
}

// The plain values below a value: what is left of a config without tensors and objects. Nothing
// when the value itself is none.
std::optional<Json> PlainPart(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return Json();
    case Value::Kind::kBool:
      return Json(value.AsBool());
    case Value::Kind::kInt:
      return Json(value.AsInt());
    case Value::Kind::kFloat:
      return Json(value.AsDouble());
    case Value::Kind::kString:
      return Json(value.AsText());
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      Json list = Json::array();
      for (const Value& item : value.items()) {
        if (auto plain = PlainPart(item)) list.push_back(*std::move(plain));
      }
      return list;
    }
    case Value::Kind::kDict: {
      Json object = Json::object();
      for (const auto& [key, item] : value.pairs()) {
        if (!key.Is(Value::Kind::kString)) continue;
        if (auto plain = PlainPart(item)) object[key.AsText()] = *std::move(plain);
      }
      return object;
    }
    default:
      return std::nullopt;
  }
}

Json ConfigIn(const Value& root) {
  if (!root.Is(Value::Kind::kDict)) return {};
  for (const auto& [key, value] : root.pairs()) {
    const bool found = key.Is(Value::Kind::kString) && key.AsText() == "config";
    if (found && value.Is(Value::Kind::kDict)) return PlainPart(value).value_or(Json());
  }
  return {};
}

// Objects in config.json are sections; what is at the top is the section "model".
void AddConfigBeside(const std::string& path, Json& config) {
  const std::string file = (fs::path(path).parent_path() / kConfigName).string();
  std::error_code error;
  if (!fs::exists(file, error)) return;
  const Json tree = LoadConfig(file).tree;
  config["model"] = Json::object();
  for (const auto& [key, value] : tree.items()) {
    (value.is_object() ? config : config["model"])[key] = value;
  }
}

}  // namespace

std::string FindModel(std::string path) {
  if (path.empty()) {
    throw Error(
        "no model: found an empty path, expected a folder with {} and {}, or a .pt, .safetensors "
        "or .pb.gz file; give the model's path",
        kWeightsName, kConfigName);
  }
  std::error_code error;
  if (!fs::exists(path, error)) path = ShippedModel(path).value_or(path);
  if (!fs::exists(path, error)) {
    // In a run's folder the message names its newest checkpoint.
    if (path.ends_with(".pt") && !ListCheckpoints(fs::path(path).parent_path()).empty()) {
      CheckCheckpointExists(path);
    }
    throw Error(
        "{}: found no such file or folder, expected a model: a folder with {} and {}, a .pt, "
        ".safetensors or .pb.gz file, or the name of a model that ships; check the path",
        path, kWeightsName, kConfigName);
  }
  if (!fs::is_directory(path)) return path;
  std::string file = (fs::path(path) / kWeightsName).string();
  if (fs::exists(file, error)) return file;
  throw Error(
      "{}: found no {} in the folder{}, expected a model folder; 'kibitz policy export' and "
      "'kibitz 2048 export' write one, or name a file of weights",
      path, kWeightsName, OtherWeights(path));
}

const Json* ModelFile::Section(std::string_view name) const {
  if (!config.is_object()) return nullptr;
  const auto found = config.find(std::string(name));
  return found != config.end() && found->is_object() ? &*found : nullptr;
}

void ModelFile::ReadSection(std::string_view name, Fields fields) const {
  const Json* section = Section(name);
  if (section == nullptr) return;
  const std::vector<std::string> names = fields.Names();
  std::vector<std::string> unknown;
  Json known = Json::object();
  for (const auto& [key, value] : section->items()) {
    if (std::ranges::find(names, key) == names.end()) {
      unknown.push_back(key);
    } else if (!value.is_null()) {
      known[key] = value;
    }
  }
  if (!unknown.empty()) {
    LogInfo("{}: config.{}: unknown keys left out: {}", place, name, fmt::join(unknown, ", "));
  }
  fields.ReadTree(known, fmt::format("{}, config.{}", place, name));
}

ModelFile ReadModel(const std::string& path) {
  const std::string file = FindModel(path);
  const ModelFormat format = FormatOf(file);
  if (format == ModelFormat::kLc0) {
    Lc0Content content = ReadLc0File(file);
    return {.weights = StateDict(std::move(content.tensors), file),
            .config = std::move(content.config),
            .place = file,
            .format = format};
  }
  const Value root =
      format == ModelFormat::kSafetensors ? Unflatten(ReadSafetensors(file), file) : ReadPt(file);
  Json config = ConfigIn(root);
  if (config.is_null() || !config.contains("model")) AddConfigBeside(file, config);
  StateDict weights = StateDict::From(root, file);
  weights.CheckFinite();
  return {.weights = std::move(weights),
          .config = std::move(config),
          .place = file,
          .format = format,
          .root = root};
}

int SizeFromShape(const StateDict& weights, const std::string& name, size_t axis) {
  const Tensor& tensor = weights.Get(name);
  if (tensor.shape.size() <= axis) {
    throw Error("{}: {} is {}, expected at least {} axes; is this the right kind of model?",
                weights.place(), name, ShapeText(tensor.shape), axis + 1);
  }
  return static_cast<int>(tensor.shape[axis]);
}

int CountLayers(const StateDict& weights, std::string_view format, int first) {
  int count = 0;
  while (weights.Find(fmt::format(fmt::runtime(format), first + count)) != nullptr) ++count;
  return count;
}

void WriteModel(const std::string& folder, const StateDict& weights, const Json& config) {
  MakeFolder(folder);
  WriteSafetensors((fs::path(folder) / kWeightsName).string(), {.tensors = weights.tensors()});
  WriteFileAtomically((fs::path(folder) / kConfigName).string(), config.dump(2) + "\n");
}

}  // namespace kibitz::io
