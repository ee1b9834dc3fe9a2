// Training runs: which there are, and their metrics as they grow.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "io/weights/run_checkpoints.h"
#include "serve/api.h"

namespace kibitz::serve {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxBytes = int64_t{4} << 20;  // Of a log, in one reply.

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Json RunJson(const Found& run) {
  return {{"id", run.id},
          {"changed", run.changed},
          {"idle_seconds", std::max<int64_t>(0, Now() - run.changed)},
          {"bytes", run.bytes},
          {"checkpoints", io::ListCheckpoints(run.path.string()).size()}};
}

Reply Runs(Office& office, const Request&, const std::string&) {
  Json list = Json::array();
  for (const Found& run : office.catalog.Runs()) list.push_back(RunJson(run));
  return JsonReply({{"runs", std::move(list)}, {"folders", office.catalog.options().runs}});
}

// The whole lines of a log from byte `from` on; an unfinished last line is left for later.
std::string WholeLines(const fs::path& path, int64_t from) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(from);
  std::string bytes(static_cast<size_t>(kMaxBytes), '\0');
  file.read(bytes.data(), kMaxBytes);
  bytes.resize(static_cast<size_t>(file.gcount()));
  const size_t last = bytes.rfind('\n');
  bytes.resize(last == std::string::npos ? 0 : last + 1);
  return bytes;
}

// The objects of a log from the byte that the request names on. Where a reader asks from beyond the
// end, the run was started over: it gets everything.
Json LogJson(const fs::path& path, const Request& request, const char* key) {
  std::error_code missing;
  const auto size = static_cast<int64_t>(fs::file_size(path, missing));
  const int64_t asked = QueryInt(request, key, 0, 0, int64_t{1} << 50);
  const int64_t from = missing || asked > size ? 0 : asked;
  const std::string bytes = missing ? "" : WholeLines(path, from);
  Json lines = Json::array();
  for (std::string_view line : Split(bytes, '\n')) {
    if (line.empty()) continue;
    Json object = ParseJson(line);
    if (object.is_object()) lines.push_back(std::move(object));
  }
  return {{"from", from},
          {"next", from + static_cast<int64_t>(bytes.size())},
          {"more", static_cast<int64_t>(bytes.size()) > kMaxBytes / 2},
          {"lines", std::move(lines)}};
}

// What it learned and how fast, in logs of its own: two runs that learned the same have the same
// metrics, not the same times.
Reply Metrics(Office& office, const Request& request, const std::string& id) {
  const Found run = office.catalog.Run(id);
  Json json = RunJson(run);
  json.update(LogJson(run.path / "metrics.jsonl", request, "from"));
  json["timing"] = LogJson(run.path / "timing.jsonl", request, "timing_from");
  if (const auto newest = office.catalog.NewestOf(run)) {
    json["newest"] = {{"id", newest->id}, {"kind", newest->kind}, {"changed", newest->changed}};
  }
  return JsonReply(json);
}

}  // namespace

std::vector<Route> RunRoutes() {
  return {{"GET", "runs", Runs}, {"GET", "runs/*/metrics", Metrics}};
}

}  // namespace kibitz::serve
