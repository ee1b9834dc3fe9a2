// Checkpoints of a run: one .pt file a save, in the layout that Python training scripts use (epoch,
// step, model_state_dict, optimizer_state_dict, scaler_state_dict, config), and under "kibitz" what
// an exact resume needs besides.
//
//   RunFolder folder("checkpoints/run-1", {.keep = 3});
//   std::string path = folder.Save(checkpoint);
//   std::optional<std::string> last = folder.Last();
//
// A file is written aside and renamed, so a kill leaves the one before.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/weights/value.h"

namespace kibitz::learn {

struct Checkpoint {
  int64_t epoch = 0;
  int64_t step = 0;
  io::Value model;      // Weights by name.
  io::Value optimizer;  // As PyTorch's optimizers have it.
  nlohmann::ordered_json config;
  io::Value student;           // The student's own state: position in the data, open sums.
  double seconds = 0;          // Of training so far, over all stretches.
  std::optional<double> best;  // The lowest validation loss so far.
  std::string device = "cpu";
};

io::Value ToValue(const Checkpoint& checkpoint);
// Reads a file that ToValue's was written to. Throws Error when it is no such checkpoint, also for
// one of a Python script: those have weights to start from, not a run to go on with.
Checkpoint ReadCheckpoint(const std::string& path);

struct RunFolderOptions {
  int64_t keep = 3;  // Newest checkpoints to keep; 0: all.
};

class RunFolder {
 public:
  // Makes the folder.
  RunFolder(std::string path, const RunFolderOptions& options);

  // Writes "checkpoint_step_000120.pt" and removes the oldest beyond the number to keep. With
  // `best` the same file is also "best.pt".
  std::string Save(const Checkpoint& checkpoint, bool best);
  // The newest checkpoint; nothing when there is none.
  std::optional<std::string> Last() const;
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::vector<std::string> All() const;  // Oldest first.

  std::string path_;
  RunFolderOptions options_;
};

}  // namespace kibitz::learn
