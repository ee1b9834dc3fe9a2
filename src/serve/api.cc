#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "serve/page.h"

namespace kibitz::serve {
namespace {

constexpr std::string_view kPrefix = "/api/v1/";

// What '*' stands for where the pattern fits; nothing where it does not.
std::optional<std::string> Match(std::string_view pattern, std::string_view path) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == path ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after)) {
    return std::nullopt;
  }
  return std::string(path.substr(before.size(), path.size() - before.size() - after.size()));
}

void AddAll(std::vector<Route>& to, std::vector<Route> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Office::Office(const ApiOptions& options)
    : catalog(options.catalog),
      desk(catalog, options.desk),
      series(options.results),
      jobs(options.jobs) {}

Api::Api(const ApiOptions& options) : office_(std::make_unique<Office>(options)) {
  for (auto* routes : {&ChessRoutes, &ThinkRoutes, &ModelRoutes, &JobRoutes, &RunRoutes,
                       &DataRoutes, &Twenty48Routes, &ArenaRoutes}) {
    AddAll(routes_, routes());
  }
}

Reply Api::Handle(const Request& request) {
  if (!request.path.starts_with("/api/")) return {.response = PageResponse(request)};
  if (!request.path.starts_with(kPrefix)) {
    return {.response = ErrorResponse(404, "unknown version of the interface", "use /api/v1")};
  }
  const std::string_view path = std::string_view(request.path).substr(kPrefix.size());
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  bool known = false;
  for (const Route& route : routes_) {
    const auto rest = Match(route.pattern, path);
    if (!rest) continue;
    known = true;
    if (route.method == method) return route.handle(*office_, request, *rest);
  }
  if (known) return {.response = ErrorResponse(405, "this address takes another method")};
  return {.response = ErrorResponse(404, fmt::format("there is no {}", Quoted(request.path)),
                                    "docs/API.md lists all addresses")};
}

Reply JsonReply(const Json& json, int status) {
  return {.response = {.status = status, .body = Dump(json)}};
}

Json BodyOf(const Request& request) {
  Json body = ParseJson(request.body);
  if (!body.is_object()) throw Error::Usage("the body is no JSON object");
  return body;
}

std::string TextIn(const Json& object, const char* key, const std::string& otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_string()) throw Error::Usage("{}: expected a text", key);
  return found->get<std::string>();
}

double NumberIn(const Json& object, const char* key, double otherwise, double min, double max) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (!(value >= min && value <= max)) {
    throw Error::Usage("{}: found {}, expected a number from {} to {}", key, Quoted(Dump(*found)),
                       min, max);
  }
  return value;
}

int IntIn(const Json& object, const char* key, int otherwise, int min, int max) {
  const double value = NumberIn(object, key, otherwise, min, max);
  if (value != std::floor(value)) throw Error::Usage("{}: expected a whole number", key);
  return static_cast<int>(value);
}

bool BoolIn(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_boolean()) throw Error::Usage("{}: expected true or false", key);
  return found->get<bool>();
}

int64_t QueryInt(const Request& request, const char* key, int64_t otherwise, int64_t min,
                 int64_t max) {
  const std::string_view text = request.Query(key);
  if (text.empty()) return otherwise;
  const auto value = ParseInt(text);
  if (!value || *value < min || *value > max) {
    throw Error::Usage("{}: found {}, expected a whole number from {} to {}", key, Quoted(text),
                       min, max);
  }
  return *value;
}

double QueryNumber(const Request& request, const char* key, double otherwise, double min,
                   double max) {
  const std::string_view text = request.Query(key);
  if (text.empty()) return otherwise;
  const auto value = ParseDouble(text);
  if (!value || !(*value >= min && *value <= max)) {
    throw Error::Usage("{}: found {}, expected a number from {} to {}", key, Quoted(text), min,
                       max);
  }
  return *value;
}

}  // namespace kibitz::serve
