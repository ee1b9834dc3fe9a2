// The JSON interface under /api/v1 (docs/API.md), and the page: a request in, a reply out.
//
//   Api api({.catalog = {.models = {"models"}}});
//   const Reply reply = api.Handle(request);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/catalog.h"
#include "serve/desk.h"
#include "serve/http/message.h"
#include "serve/jobs.h"
#include "serve/series_store.h"

namespace kibitz::serve {

struct ApiOptions {
  CatalogOptions catalog = {};
  DeskOptions desk = {};
  JobQueueOptions jobs = {};
  std::string results = {};  // Folder of series; "": they are not kept.
};

// What handlers share.
struct Office {
  explicit Office(const ApiOptions& options);

  Catalog catalog;
  Desk desk;
  SeriesStore series;
  JobQueue jobs;
};

// One address: "GET", "models/*"; `rest` is what '*' stands for.
struct Route {
  std::string method;
  std::string pattern;  // Behind /api/v1/.
  std::function<Reply(Office& office, const Request& request, const std::string& rest)> handle;
};

// Those of each part.
std::vector<Route> ChessRoutes();
std::vector<Route> ThinkRoutes();
std::vector<Route> ModelRoutes();
std::vector<Route> JobRoutes();
std::vector<Route> RunRoutes();
std::vector<Route> DataRoutes();
std::vector<Route> Twenty48Routes();
std::vector<Route> ArenaRoutes();

class Api {
 public:
  explicit Api(const ApiOptions& options);

  // On several threads at once. Error::Usage is the client's fault: 400.
  Reply Handle(const Request& request);
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::unique_ptr<Office> office_;
  std::vector<Route> routes_;
};

// A reply of JSON.
Reply JsonReply(const Json& json, int status = 200);

// The body as a JSON object. Throws Error::Usage.
Json BodyOf(const Request& request);

// Members of a request's object, with their defaults and ranges. Each throws Error::Usage for a
// value of another type or out of range.
std::string TextIn(const Json& object, const char* key, const std::string& otherwise);
double NumberIn(const Json& object, const char* key, double otherwise, double min, double max);
int IntIn(const Json& object, const char* key, int otherwise, int min, int max);
bool BoolIn(const Json& object, const char* key, bool otherwise);
// Of the query; throws likewise.
int64_t QueryInt(const Request& request, const char* key, int64_t otherwise, int64_t min,
                 int64_t max);
double QueryNumber(const Request& request, const char* key, double otherwise, double min,
                   double max);

}  // namespace kibitz::serve
