// What can be opened: models, runs and data sets below the folders given at start. Requests name
// things by id, and only ids that a scan has found are opened; no path is made from a request.
//
//   Catalog catalog({.models = {"models"}});
//   const ModelEntry entry = catalog.Model("policy-small");
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kibitz::serve {

struct CatalogOptions {
  std::vector<std::string> models = {};
  std::vector<std::string> data = {};
  std::vector<std::string> runs = {};
};

// A file or folder that was found.
struct Found {
  std::string id;  // Its path below the folder it was found in.
  std::filesystem::path path;
  int64_t changed = 0;  // Seconds since 1970.
  uint64_t bytes = 0;
};

struct ModelEntry : Found {
  std::string kind;          // "decoder", "policy", "lc0", "2048"; "" where it cannot be read.
  std::string problem = {};  // Why it cannot.
  uint64_t parameters = 0;
  nlohmann::ordered_json config = {};
  std::string run = {};  // The id of the run it is a checkpoint of.
};

struct DataEntry : Found {
  std::string kind;  // "policy", "decoder-games", "decoder-searches", "2048"
};

class Catalog {
 public:
  explicit Catalog(CatalogOptions options);

  const CatalogOptions& options() const { return options_; }
  // Looks at the folders again; what did not change since is not read again.
  std::vector<ModelEntry> Models();
  std::vector<Found> Runs() const;
  std::vector<DataEntry> Data();

  // The newest checkpoint of a run. Model knows its id, though Models lists the best one.
  std::optional<ModelEntry> NewestOf(const Found& run);

  // By id. Throws Error::Usage when there is none.
  ModelEntry Model(const std::string& id);
  Found Run(const std::string& id) const;
  DataEntry DataSet(const std::string& id);

 private:
  // With mutex_ held.
  ModelEntry Described(const Found& found);
  std::optional<ModelEntry> CheckpointOf(const Found& run, const std::filesystem::path& path);
  std::string DataKindOf(const std::filesystem::path& path, const Found& found);

  const CatalogOptions options_;
  std::mutex mutex_;
  std::map<std::string, ModelEntry> known_;      // By path; guarded by mutex_, as below.
  std::map<std::string, DataEntry> known_data_;  // Likewise; those of no kind too.
};

}  // namespace kibitz::serve
