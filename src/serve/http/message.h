// A request and its reply, as handlers see them.
//
//   Reply Hello(const Request& request) {
//     return {.response = {.body = R"({"hello": "world"})"}};
//   }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/event_log.h"

namespace kibitz::serve {

struct Request {
  std::string method;  // "GET", "POST", ...
  // Percent-decoded; begins with '/'. Has no empty, "." or ".." segment and no control byte.
  std::string path;
  std::map<std::string, std::string> query = {};    // Decoded; of equal names the last counts.
  std::map<std::string, std::string> headers = {};  // Names in lower case.
  std::string body = {};
  bool keep_alive = true;

  // "" where there is none.
  std::string_view Header(std::string_view name) const;
  std::string_view Query(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// A response, or a stream of server-sent events.
struct Reply {
  Response response = {};
  std::shared_ptr<EventLog> events = {};  // Where set: its events, as they come.
  std::function<void()> on_leave = {};    // Once, when this client has stopped reading them.
};

using Handler = std::function<Reply(const Request&)>;

// {"error": {"message": ..., "hint": ...}} with this status.
Response ErrorResponse(int status, std::string_view message, std::string_view hint = "");

// "%41" to "A". Nothing for a broken escape.
std::optional<std::string> PercentDecoded(std::string_view text, bool plus_is_space = false);

}  // namespace kibitz::serve
