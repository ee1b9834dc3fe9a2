#include "io/runs/metrics_log.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "io/runs/locked_file.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

bool IsDropped(const Json& object, std::optional<int64_t> resume_step) {
  if (!resume_step) return false;
  if (const auto closing = object.find("closing"); closing != object.end()) return true;
  const auto step = object.find("step");
  return step != object.end() && step->is_number() &&
         step->get<double>() > static_cast<double>(*resume_step);
}

// Rewrites the file without an incomplete last line and without later steps, if it has any.
void DropLines(const std::string& path, std::optional<int64_t> resume_step) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) throw Error::System("cannot read " + path);
  AtomicFile kept(path);
  bool dropped = false;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) {  // No newline: the line was being written.
      dropped = true;
      break;
    }
    const Json object = ParseJson(line);
    if (!object.is_object()) {
      throw Error("{}, line {}: {} is not a JSON object; remove the line or start another log",
                  path, number, Quoted(line));
    }
    if (IsDropped(object, resume_step)) {
      dropped = true;
      continue;
    }
    kept.Write(line);
    kept.Write("\n");
  }
  if (in.bad()) throw Error::System("cannot read " + path);
  if (dropped) kept.Commit();
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, const MetricsLogOptions& options) : path_(path) {
  const int before = OpenLocked(path);
  std::shared_ptr<void> unlock(nullptr, [before](void*) { close(before); });
  DropLines(path, options.resume_step);  // May put a new file in place.
  unlock.reset();
  descriptor_ = OpenLocked(path);
}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void MetricsLog::Write(const nlohmann::ordered_json& object) {
  CHECK(object.is_object());
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  WriteWhole(descriptor_, line, path_);
}

}  // namespace kibitz::io
