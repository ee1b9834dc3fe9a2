#include "serve/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/tables/parquet.h"
#include "io/weights/model_file.h"
#include "io/weights/run_checkpoints.h"
#include "players/networks.h"

namespace kibitz::serve {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 4;
constexpr size_t kMaxFound = 500;

// A link may lead anywhere; what lies outside the folder is not ours to show.
bool IsInside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return false;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  return std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end()).first ==
         real_root.end();
}

std::optional<Found> Look(const fs::path& root, const fs::path& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 || !IsInside(root, path)) return std::nullopt;
  std::error_code error;
  std::string id = fs::relative(path, root, error).generic_string();
  if (error || id.empty()) return std::nullopt;
  if (id == ".") id = fs::absolute(root).lexically_normal().filename().string();
  return Found{.id = std::move(id),
               .path = path,
               .changed = facts.st_mtim.tv_sec,
               .bytes = static_cast<uint64_t>(facts.st_size)};
}

// Calls `use` for each folder and file below `root`, the root first; `use` says whether to go into
// a folder.
void Walk(const fs::path& folder, int depth, const std::function<bool(const fs::path&)>& use) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.')) continue;
    paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    if (use(path) && depth > 1 && fs::is_directory(path, error)) Walk(path, depth - 1, use);
  }
}

bool IsModelFile(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".pt") || name.ends_with(".safetensors") || name.ends_with(".pb.gz") ||
         name.ends_with(".pb");
}

bool IsModelFolder(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "model.safetensors", error);
}

void AddUnique(std::vector<Found>& list, std::optional<Found> found) {
  if (!found || list.size() >= kMaxFound) return;
  const bool known = std::any_of(list.begin(), list.end(),
                                 [&](const Found& other) { return other.id == found->id; });
  if (!known) list.push_back(*std::move(found));
}

std::vector<Found> FindModels(const std::vector<std::string>& folders) {
  std::vector<Found> found;
  for (const std::string& folder : folders) {
    const fs::path root(folder);
    std::error_code missing;
    if (IsModelFolder(root) || (IsModelFile(root) && fs::is_regular_file(root, missing))) {
      AddUnique(found, Look(root, root));
      continue;
    }
    Walk(root, kMaxDepth, [&](const fs::path& path) {
      std::error_code error;
      if (fs::is_directory(path, error)) {
        if (!IsModelFolder(path)) return true;
        AddUnique(found, Look(root, path));
        return false;
      }
      if (IsModelFile(path)) AddUnique(found, Look(root, path));
      return false;
    });
  }
  return found;
}

std::vector<Found> FindRuns(const std::vector<std::string>& folders) {
  std::vector<Found> found;
  for (const std::string& folder : folders) {
    const fs::path root(folder);
    const auto take = [&](const fs::path& path) {
      std::error_code error;
      if (!fs::is_directory(path, error)) return false;
      if (!fs::exists(path / "metrics.jsonl", error)) return true;
      auto run = Look(root, path);
      const auto log = Look(root, path / "metrics.jsonl");
      if (run && log) {
        run->changed = log->changed;
        run->bytes = log->bytes;
        AddUnique(found, std::move(run));
      }
      return false;
    };
    if (take(root)) Walk(root, kMaxDepth, take);
  }
  return found;
}

std::string DataKind(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (fs::exists(path / "manifest.json", error)) return "policy";
    if (fs::exists(path / "steps.npy", error)) return "2048";
    return "";
  }
  if (path.extension() != ".parquet") return "";
  try {
    const io::ParquetReader reader({path.string()}, {.threads = 1});
    std::set<std::string> columns;
    for (const auto& column : reader.Info(0).columns) columns.insert(column.name);
    if (columns.contains("variations")) return "decoder-searches";
    if (columns.contains("game_id")) return "decoder-games";
  } catch (const Error&) {
  }
  return "";
}

// By id in a list; Error::Usage that names the nearest.
template <typename Entry>
Entry ById(const std::vector<Entry>& list, const std::string& id, std::string_view what) {
  std::vector<std::string> ids;
  for (const Entry& entry : list) {
    if (entry.id == id) return entry;
    ids.push_back(entry.id);
  }
  const auto nearest = NearestName(id, ids);
  throw Error::Usage("there is no {} {}{}", what, Quoted(id),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

std::string KindOf(const io::ModelFile& file) {
  const nlohmann::ordered_json* model = file.Section("model");
  if (model != nullptr &&
      (model->contains("input_vocab_size") || model->contains("output_n_bins"))) {
    return "2048";
  }
  switch (players::NetworkKindOf(file)) {
    case players::NetworkKind::kDecoder:
      return "decoder";
    case players::NetworkKind::kPolicy:
      return "policy";
    default:
      return "lc0";
  }
}

}  // namespace

Catalog::Catalog(CatalogOptions options) : options_(std::move(options)) {}

std::vector<Found> Catalog::Runs() const { return FindRuns(options_.runs); }

ModelEntry Catalog::Described(const Found& found) {
  const auto known = known_.find(found.path.string());
  if (known != known_.end() && known->second.changed == found.changed &&
      known->second.bytes == found.bytes) {
    return known->second;
  }
  ModelEntry entry;
  static_cast<Found&>(entry) = found;
  try {
    const io::ModelFile file = io::ReadModel(found.path.string());
    entry.kind = KindOf(file);
    entry.config = file.config;
    for (const auto& tensor : file.weights.tensors()) {
      uint64_t count = 1;
      for (const auto size : tensor.tensor.shape) count *= static_cast<uint64_t>(size);
      entry.parameters += count;
    }
  } catch (const std::exception& error) {
    entry.problem = error.what();
  }
  known_[found.path.string()] = entry;
  return entry;
}

std::vector<ModelEntry> Catalog::Models() {
  const std::lock_guard lock(mutex_);
  std::vector<ModelEntry> models;
  for (const Found& found : FindModels(options_.models)) models.push_back(Described(found));
  // Of each run the best checkpoint, or the newest where there is no best.
  for (const Found& run : Runs()) {
    fs::path path = run.path / "best.pt";
    std::error_code error;
    if (!fs::exists(path, error)) {
      const auto checkpoints = io::ListCheckpoints(run.path.string());
      if (checkpoints.empty()) continue;
      path = checkpoints.back();
    }
    if (auto entry = CheckpointOf(run, path)) models.push_back(*std::move(entry));
  }
  return models;
}

std::optional<ModelEntry> Catalog::CheckpointOf(const Found& run, const fs::path& path) {
  auto found = Look(run.path, path);
  if (!found) return std::nullopt;
  found->id = run.id + "/" + found->id;
  ModelEntry entry = Described(*found);
  entry.run = run.id;
  return entry;
}

std::optional<ModelEntry> Catalog::NewestOf(const Found& run) {
  const auto checkpoints = io::ListCheckpoints(run.path.string());
  if (checkpoints.empty()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return CheckpointOf(run, checkpoints.back());
}

std::string Catalog::DataKindOf(const fs::path& path, const Found& found) {
  const auto known = known_data_.find(path.string());
  if (known != known_data_.end() && known->second.changed == found.changed &&
      known->second.bytes == found.bytes) {
    return known->second.kind;
  }
  DataEntry entry{found, DataKind(path)};
  return (known_data_[path.string()] = std::move(entry)).kind;
}

std::vector<DataEntry> Catalog::Data() {
  const std::lock_guard lock(mutex_);
  std::vector<DataEntry> list;
  for (const std::string& folder : options_.data) {
    const fs::path root(folder);
    const auto take = [&](const fs::path& path) {
      const auto found = Look(root, path);
      if (!found) return false;
      const std::string kind = DataKindOf(path, *found);
      if (kind.empty()) return true;
      if (list.size() < kMaxFound) list.push_back({*found, kind});
      return false;
    };
    if (take(root)) Walk(root, kMaxDepth, take);
  }
  return list;
}

ModelEntry Catalog::Model(const std::string& id) {
  for (const Found& run : Runs()) {
    if (!id.starts_with(run.id + "/")) continue;
    if (auto newest = NewestOf(run); newest && newest->id == id) return *std::move(newest);
  }
  return ById(Models(), id, "model");
}
Found Catalog::Run(const std::string& id) const { return ById(Runs(), id, "run"); }
DataEntry Catalog::DataSet(const std::string& id) { return ById(Data(), id, "data set"); }

}  // namespace kibitz::serve
