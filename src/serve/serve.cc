#include "serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/shipped.h"
#include "base/text.h"
#include "serve/http/gate.h"

namespace kibitz::serve {
namespace {

bool IsLoopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

std::string RandomToken() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

std::string InUrl(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

// The names by which this server may be called.
GateOptions GateOf(const ServeOptions& options, const std::string& token, int port) {
  GateOptions gate{.token = token};
  std::vector<std::string> names = options.allow_host;
  names.push_back(InUrl(options.host));
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) names.emplace_back(name);
  for (const std::string& name : names) {
    gate.hosts.push_back(fmt::format("{}:{}", LowerCase(name), port));
    if (port == 80) gate.hosts.push_back(LowerCase(name));
  }
  for (const std::string& name : options.allow_host) gate.hosts.push_back(LowerCase(name));
  gate.any_address = !IsLoopback(options.host);
  return gate;
}

CatalogOptions CatalogOf(const ServeOptions& options) {
  CatalogOptions catalog{.models = options.models, .data = options.data, .runs = options.runs};
  if (const auto shipped = FindShipped("models")) catalog.models.push_back(*shipped);
  return catalog;
}

std::string ResultsOf(const ServeOptions& options) {
  if (!options.results.empty()) return options.results;
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return fmt::format("{}/kibitz/series", state);
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fmt::format("{}/.local/state/kibitz/series", home) : "";
}

}  // namespace

Fields FieldsOf(ServeOptions& options) {
  Fields fields;
  fields.Add("host", options.host, "numeric address to listen on; 0.0.0.0: all, with a token");
  fields.Add("port", options.port, "port; 0: any free one", {.min = 0, .max = 65535});
  fields.Add("models", options.models, "folders of models, besides those that ship",
             {.metavar = "DIR"});
  fields.Add("data", options.data, "folders of data sets", {.metavar = "DIR"});
  fields.Add("runs", options.runs, "folders of training runs", {.metavar = "DIR"});
  fields.Add("engines", options.engines, "UCI engines that the page may start",
             {.metavar = "PROGRAM"});
  fields.Add("allow_host", options.allow_host, "further names that this server is reached by",
             {.metavar = "NAME"});
  fields.Add("results", options.results,
             "folder that keeps series of games; default: ~/.local/state/kibitz/series",
             {.metavar = "DIR"});
  fields.Add("token", options.token,
             "secret that clients must know; default: none on 127.0.0.1, else a random one");
  fields.Add("jobs", options.jobs, "thoughts, moves and games at once; others wait",
             {.min = 1, .max = 64});
  return fields;
}

Serving::Serving(ServeOptions options) : options_(std::move(options)), token_(options_.token) {
  if (token_.empty() && !IsLoopback(options_.host)) token_ = RandomToken();
  api_ = std::make_unique<Api>(ApiOptions{.catalog = CatalogOf(options_),
                                          .desk = {.engines = options_.engines},
                                          .jobs = {.running = options_.jobs},
                                          .results = ResultsOf(options_)});
  // The gate needs the port, which is known once the server listens.
  auto gate = std::make_shared<std::unique_ptr<Gate>>();
  server_ = std::make_unique<Server>(
      ServerOptions{.host = options_.host, .port = options_.port},
      [gate](const Request& request) { return (*gate)->Refuse(request); },
      [this](const Request& request) { return api_->Handle(request); });
  *gate = std::make_unique<Gate>(GateOf(options_, token_, server_->port()));
}

std::string Serving::address() const {
  const bool all = options_.host == "0.0.0.0" || options_.host == "::";
  return fmt::format("http://{}:{}/{}", all ? "127.0.0.1" : InUrl(options_.host), server_->port(),
                     token_.empty() ? "" : "?token=" + token_);
}

}  // namespace kibitz::serve
