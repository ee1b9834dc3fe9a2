// An HTTP server: one thread reads and writes for all connections, a few threads run handlers.
//
//   Server server({.port = 0}, check, handler);
//   fmt::print("http://127.0.0.1:{}/\n", server.port());
//   server.Run(stop);   // Until the stop token.
//
// A connection costs memory, never a thread: slow readers of a stream wait in the event loop. Every
// read and write has a time limit, headers and bodies have a size limit, and where connections are
// too many, those that have waited longest for a request are closed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "serve/http/message.h"
#include "serve/http/request_parser.h"

namespace kibitz::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";  // A numeric address.
  int port = 8080;                 // 0: any free one.
  RequestLimits limits = {};
  double read_seconds = 10;   // For a whole request, from its first byte or the last response.
  double write_seconds = 20;  // For a response, or a piece of a stream.
  double ping_seconds = 10;   // Between comments in a silent stream, which find lost clients.
  int connections = 2000;     // At most.
  int handlers = 4;           // Threads.
  int waiting = 200;          // Requests that wait for one; more get 503.
};

// A refusal, or nothing where the request may pass.
using Check = std::function<std::optional<Response>(const Request&)>;

class Server {
 public:
  // Listens. Throws Error when the address cannot be had. `check` may refuse a request before the
  // handler sees it, and must be quick. The handler runs on several threads at once and may throw
  // Error.
  Server(const ServerOptions& options, Check check, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // What was closed to make room or for being late: for tests and logs.
  int64_t dropped() const;
  // Serves until the stop token, then closes all connections.
  void Run(std::stop_token stop);

  class Core;  // Of server.cc.

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace kibitz::serve
