#include "serve/http/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace kibitz::serve {
namespace {

// "192.168.1.7:8080" or "[fe80::1]:8080".
bool IsNumeric(std::string_view host) {
  if (host.starts_with('[')) {
    return std::all_of(host.begin(), host.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
             c == ':' || c == '[' || c == ']';
    });
  }
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == ':';
  });
}

std::string_view CookieOf(const Request& request, std::string_view name) {
  for (std::string_view part : Split(request.Header("cookie"), ';')) {
    part = Trim(part);
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == name) {
      return part.substr(equals + 1);
    }
  }
  return {};
}

Response WithCookie(const Request& request, const std::string& token) {
  return {.status = 303,
          .type = "text/plain; charset=utf-8",
          .headers = {
              {"Location", request.path},
              {"Set-Cookie", fmt::format("kibitz={}; HttpOnly; SameSite=Strict; Path=/", token)}}};
}

}  // namespace

bool SameSecret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

Gate::Gate(GateOptions options) : options_(std::move(options)) {}

bool Gate::KnownHost(std::string_view host) const {
  const std::string lower = LowerCase(host);
  if (std::find(options_.hosts.begin(), options_.hosts.end(), lower) != options_.hosts.end()) {
    return true;
  }
  return options_.any_address && IsNumeric(host);
}

bool Gate::HasToken(const Request& request) const {
  const std::string_view authorization = request.Header("authorization");
  return (authorization.starts_with("Bearer ") &&
          SameSecret(authorization.substr(7), options_.token)) ||
         SameSecret(CookieOf(request, "kibitz"), options_.token);
}

std::optional<Response> Gate::Refuse(const Request& request) const {
  const std::string_view host = request.Header("host");
  if (!KnownHost(host)) {
    return ErrorResponse(421, fmt::format("this server is not {}", Quoted(host)),
                         "open the address that 'kibitz serve' printed, or add --allow-host");
  }
  const std::string_view origin = request.Header("origin");
  const std::string_view site = request.Header("sec-fetch-site");
  const bool api = request.path.starts_with("/api/");
  const bool foreign_origin = !origin.empty() && origin != fmt::format("http://{}", host) &&
                              origin != fmt::format("https://{}", host);
  const bool foreign_site = site == "cross-site" || site == "same-site";
  if (foreign_origin || (foreign_site && api)) {
    return ErrorResponse(403, "the request comes from a page of another site");
  }
  if (!options_.token.empty() && !HasToken(request)) {
    if (request.method == "GET" && !api && SameSecret(request.Query("token"), options_.token)) {
      return WithCookie(request, options_.token);
    }
    return ErrorResponse(401, "this server asks for a token",
                         "open the address with ?token=... that 'kibitz serve' printed, or send "
                         "'Authorization: Bearer TOKEN'");
  }
  if (request.method != "GET" && request.method != "HEAD" && request.method != "DELETE" &&
      LowerCase(request.Header("content-type")) != "application/json") {
    return ErrorResponse(415, "the body must be JSON", "send 'Content-Type: application/json'");
  }
  return std::nullopt;
}

}  // namespace kibitz::serve
