#include "serve/http/message.h"

#include <nlohmann/json.hpp>

namespace kibitz::serve {
namespace {

std::string_view Find(const std::map<std::string, std::string>& map, std::string_view name) {
  const auto found = map.find(std::string(name));
  return found == map.end() ? std::string_view() : std::string_view(found->second);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view Request::Header(std::string_view name) const { return Find(headers, name); }
std::string_view Request::Query(std::string_view name) const { return Find(query, name); }

Response ErrorResponse(int status, std::string_view message, std::string_view hint) {
  nlohmann::ordered_json error = {{"message", message}};
  if (!hint.empty()) error["hint"] = hint;
  const nlohmann::ordered_json body = {{"error", error}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

std::optional<std::string> PercentDecoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

}  // namespace kibitz::serve
