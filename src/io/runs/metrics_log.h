// A run's metrics as JSON lines: one object per line, written whole, so that a kill loses at most
// the line being written.
//
//   MetricsLog log("runs/a/metrics.jsonl", {.resume_step = 1200});
//   log.Write({{"step", 1300}, {"loss", 2.31}});
//
// Opening an existing file drops an incomplete last line and, when resuming, the lines of later
// steps: a resumed run leaves the same file as one that was never interrupted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace kibitz::io {

struct MetricsLogOptions {
  // Lines whose "step" is greater are dropped, and so are those with "closing": true, which a run
  // writes only because it stops. Lines without a step stay. Nothing: all stay.
  std::optional<int64_t> resume_step = {};
};

class MetricsLog {
 public:
  // Throws Error when the file cannot be written, is open elsewhere, or has a line that is not a
  // JSON object.
  explicit MetricsLog(const std::string& path, const MetricsLogOptions& options = {});
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // Numbers that JSON cannot hold (NaN, infinity) become null.
  void Write(const nlohmann::ordered_json& object);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace kibitz::io
