// The checkpoints in a training run's folder: checkpoint_step_000000120.pt and so on, and best.pt.
//
//   for (const std::string& path : ListCheckpoints("checkpoints/run-1")) fmt::print("{}\n", path);
#pragma once

#include <string>
#include <vector>

namespace kibitz::io {

// Oldest first, without best.pt; none when there is no such folder.
std::vector<std::string> ListCheckpoints(const std::string& folder);

// Throws Error when there is no file at `path`. The message names the newest checkpoint of the same
// folder, if there is one: a run without validation data has no best.pt.
void CheckCheckpointExists(const std::string& path);

}  // namespace kibitz::io
