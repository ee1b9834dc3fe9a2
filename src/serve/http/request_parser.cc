#include "serve/http/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include "base/text.h"
#include "serve/http/beast_request.h"

namespace kibitz::serve {
namespace {

namespace http = boost::beast::http;

bool HasControl(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

std::string SetPath(std::string_view raw, Request& request) {
  const auto path = PercentDecoded(raw);
  if (!path || HasControl(*path) || !path->starts_with('/')) return "the path is malformed";
  const auto parts = Split(std::string_view(*path).substr(1), '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool empty_last = parts[i].empty() && parts.size() == 1;  // "/" itself.
    if (parts[i] == "." || parts[i] == ".." || (parts[i].empty() && !empty_last)) {
      return "the path has an empty, '.' or '..' segment";
    }
  }
  request.path = *path;
  return "";
}

}  // namespace

std::string SetTarget(std::string_view target, Request& request) {
  const size_t question = target.find('?');
  std::string reason = SetPath(target.substr(0, question), request);
  if (!reason.empty() || question == std::string_view::npos) return reason;
  for (std::string_view pair : Split(target.substr(question + 1), '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const auto name = PercentDecoded(pair.substr(0, equals), true);
    const auto value = PercentDecoded(
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) return "the query is malformed";
    request.query[*name] = *value;
  }
  return "";
}

void SetLimits(BeastParser& parser, const RequestLimits& limits) {
  parser.header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser.body_limit(limits.body_bytes);
}

Result<Request> RequestOf(http::request<http::string_body>&& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.keep_alive = message.keep_alive();
  std::string reason = SetTarget(message.target(), request);
  if (!reason.empty()) return Bad("{}", reason);
  for (const auto& field : message) {
    const std::string name = LowerCase(field.name_string());
    // A second Host, Origin or length could mean one thing here and another to a proxy.
    if (request.headers.contains(name)) return Bad("the header {} is there twice", Quoted(name));
    request.headers[name] = std::string(field.value());
  }
  if (message.version() >= 11 && !request.headers.contains("host")) {
    return Bad("the header Host is missing");
  }
  request.body = std::move(message.body());
  return request;
}

Result<Request> ParseRequest(std::string_view bytes, const RequestLimits& limits) {
  BeastParser parser;
  SetLimits(parser, limits);
  parser.eager(true);
  boost::system::error_code error;
  while (!parser.is_done() && !bytes.empty()) {
    const size_t used = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error == http::error::need_more) return Bad("the request is not complete");
    if (error) return Bad("{}", error.message());
    if (used == 0) break;
    bytes.remove_prefix(used);
  }
  if (!parser.is_done()) return Bad("the request is not complete");
  return RequestOf(parser.release());
}

}  // namespace kibitz::serve
