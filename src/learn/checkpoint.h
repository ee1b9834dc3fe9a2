// Checkpoints of a run: one .pt file each, with the keys that Python training scripts use (epoch,
// step, model_state_dict, optimizer_state_dict, scaler_state_dict, config). What an exact resume
// needs besides is under "kibitz".
//
//   RunFolder folder("checkpoints/run-1", {.keep = 3});
//   std::string path = folder.Save(checkpoint, /*best=*/false);
//   std::optional<std::string> last;
//   std::optional<Checkpoint> newest = folder.ReadNewest(last);
//
// A file is written to a temporary name and renamed: a kill leaves the previous checkpoint.
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
  io::Value student;                 // Position in the data, means since the last log.
  nlohmann::ordered_json data;       // Fingerprints (run_changes.h); null in earlier versions.
  std::vector<std::string> changes;  // Of data and options, at each resume.
  double seconds = 0;                // Of training so far, all resumes included.
  std::optional<double> best;        // The lowest validation loss so far.
  bool validation_owed = false;      // A resume validates before its first step.
};

io::Value ToValue(const Checkpoint& checkpoint);
// Reads a checkpoint that a run can resume from. Throws Error for any other file, also for one that
// a Python script wrote: that has weights to start from, but no data position.
Checkpoint ReadCheckpoint(const std::string& path);

struct RunFolderOptions {
  int64_t keep = 3;  // Newest checkpoints to keep; 0: all.
};

class RunFolder {
 public:
  // Creates the folder.
  RunFolder(std::string path, const RunFolderOptions& options);

  // Writes "checkpoint_step_000000120.pt" and removes the oldest beyond the number to keep. With
  // `best`, best.pt becomes a second name of the file.
  std::string Save(const Checkpoint& checkpoint, bool best);
  // The newest checkpoint that is whole, and its path; nothing when there is none at all. One that
  // is cut short or damaged is passed over with a warning. Throws Error when all are.
  std::optional<Checkpoint> ReadNewest(std::optional<std::string>& path) const;
  bool HasBest() const;
  // Makes best.pt a second name of a checkpoint in the folder.
  void NameBest(const std::string& checkpoint);
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  RunFolderOptions options_;
};

}  // namespace kibitz::learn
