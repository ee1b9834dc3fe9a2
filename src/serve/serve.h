// 'kibitz serve': the page and its interface on a port.
//
//   ServeOptions options = {.port = 0};
//   Serving serving(options);
//   fmt::print("{}\n", serving.address());
//   serving.Run(stop);
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/options.h"
#include "serve/api.h"
#include "serve/http/server.h"

namespace kibitz::serve {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::vector<std::string> models = {};  // Besides those that ship.
  std::vector<std::string> data = {};
  std::vector<std::string> runs = {};
  std::vector<std::string> engines = {};
  std::vector<std::string> allow_host = {};
  std::string results = {};  // "": below the home folder.
  std::string token = {};
  int jobs = 2;
};
Fields FieldsOf(ServeOptions& options);

class Serving {
 public:
  // Listens. On an address that others can reach, a token is asked for; without one given, a random
  // one is made. Throws Error.
  explicit Serving(ServeOptions options);

  // To open in a browser, with the token where there is one.
  std::string address() const;
  int port() const { return server_->port(); }
  const std::string& token() const { return token_; }
  Api& api() { return *api_; }
  void Run(std::stop_token stop) { server_->Run(std::move(stop)); }

 private:
  const ServeOptions options_;
  std::string token_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Server> server_;
};

}  // namespace kibitz::serve
