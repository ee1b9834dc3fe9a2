// Models, players, and jobs that run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "players/player_name.h"
#include "players/strength.h"
#include "serve/api.h"

namespace kibitz::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxCardBytes = 64 * 1024;

std::string CardOf(const fs::path& model) {
  std::error_code error;
  if (!fs::is_directory(model, error)) return "";
  std::ifstream file(model / "README.md", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return text.substr(0, kMaxCardBytes);
}

Json RatingsOf(const fs::path& model) {
  try {
    const auto table = players::ReadStrengthTable(model.string());
    if (!table) return nullptr;
    Json points = Json::array();
    for (const auto& point : table->points) {
      points.push_back({{"temperature", point.temperature}, {"elo", point.elo}});
    }
    return {{"anchor", table->anchor}, {"points", std::move(points)}};
  } catch (const Error&) {
    return nullptr;
  }
}

uint64_t BytesOf(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::file_size(path, error);
  uint64_t sum = 0;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error)) sum += entry->file_size(error);
  }
  return sum;
}

Json ModelJson(const ModelEntry& entry) {
  Json json = {{"id", entry.id},
               {"kind", entry.kind},
               {"bytes", BytesOf(entry.path)},
               {"parameters", entry.parameters},
               {"changed", entry.changed},
               {"ratings", RatingsOf(entry.path)}};
  if (!entry.run.empty()) json["run"] = entry.run;
  if (!entry.problem.empty()) json["problem"] = entry.problem;
  return json;
}

Reply Models(Office& office, const Request&, const std::string&) {
  Json list = Json::array();
  for (const ModelEntry& entry : office.catalog.Models()) list.push_back(ModelJson(entry));
  return JsonReply({{"models", std::move(list)}, {"folders", office.catalog.options().models}});
}

Reply Model(Office& office, const Request&, const std::string& id) {
  const ModelEntry entry = office.catalog.Model(id);
  Json json = ModelJson(entry);
  json["config"] = entry.config;
  json["card"] = CardOf(entry.path);
  return JsonReply(json);
}

// Every player that can be asked, as names for POST move.
Reply Players(Office& office, const Request&, const std::string&) {
  Json list = Json::array();
  const auto add = [&](std::string name, std::string kind, std::string title) {
    list.push_back(
        {{"name", std::move(name)}, {"kind", std::move(kind)}, {"title", std::move(title)}});
  };
  for (const ModelEntry& entry : office.catalog.Models()) {
    if (entry.kind.empty() || entry.kind == "2048") continue;
    const auto name = [&](const char* kind) {
      return players::ToText({.kind = kind, .path = entry.id});
    };
    if (entry.kind == "decoder") {
      add(name("decoder") + "?think=1", "decoder", entry.id + ", thinking");
      add(name("decoder") + "?think=0", "decoder", entry.id + ", instinct");
    } else {
      add(name(entry.kind.c_str()), entry.kind, entry.id);
    }
    add(name("search") + "?nodes=200", "search", entry.id + ", search");
  }
  for (const std::string& engine : office.desk.options().engines) {
    add(players::ToText({.kind = "engine", .path = engine}) + "?movetime=200", "engine", engine);
  }
  add("negamax?depth=2", "negamax", "negamax");
  add("random", "random", "random moves");
  return JsonReply({{"players", std::move(list)}, {"options", AllowedKeys()}});
}

Reply State(Office& office, const Request&, const std::string&) {
  const CatalogOptions& folders = office.catalog.options();
  return JsonReply({{"version", KIBITZ_VERSION},
                    {"models", folders.models},
                    {"data", folders.data},
                    {"runs", folders.runs},
                    {"engines", office.desk.options().engines}});
}

Reply Jobs(Office& office, const Request&, const std::string&) {
  return JsonReply({{"jobs", office.jobs.List()}});
}

std::shared_ptr<Job> JobOf(Office& office, const std::string& id) {
  auto job = office.jobs.Find(id);
  if (!job) throw Error::Usage("there is no job {}; it may have ended long ago", id);
  return job;
}

Reply JobEvents(Office& office, const Request&, const std::string& id) {
  return office.jobs.Watch(JobOf(office, id));
}

Reply StopJob(Office& office, const Request&, const std::string& id) {
  JobOf(office, id)->Stop();
  return JsonReply({{"stopped", id}});
}

}  // namespace

std::vector<Route> ModelRoutes() {
  return {{"GET", "state", State},
          {"GET", "models", Models},
          {"GET", "models/*", Model},
          {"GET", "players", Players}};
}

std::vector<Route> JobRoutes() {
  return {
      {"GET", "jobs", Jobs}, {"GET", "jobs/*/events", JobEvents}, {"DELETE", "jobs/*", StopJob}};
}

}  // namespace kibitz::serve
