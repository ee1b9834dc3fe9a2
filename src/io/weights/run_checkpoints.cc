#include "io/weights/run_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace kibitz::io {

namespace fs = std::filesystem;

std::vector<std::string> ListCheckpoints(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("checkpoint_step_") && name.ends_with(".pt")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void CheckCheckpointExists(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return;
  const std::string folder = fs::path(path).parent_path();
  const std::vector<std::string> others = ListCheckpoints(folder.empty() ? "." : folder);
  if (others.empty()) throw Error("cannot read {}: there is no such file", path);
  throw Error(
      "cannot read {}: there is no such file (a run writes best.pt when it validates); the newest "
      "checkpoint of this run is {}",
      path, others.back());
}

}  // namespace kibitz::io
