#include "base/json.h"

#include <array>

namespace kibitz {
namespace {

// Nesting and commas outside of strings; what is no JSON may pass, the parser refuses it.
bool IsWithinLimits(std::string_view text) {
  std::array<int, kMaxJsonDepth + 1> commas{};  // At each level.
  int depth = 0;
  bool in_string = false;
  std::array<bool, kMaxJsonDepth + 1> is_object{};
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return false;  // The parser takes it for the end.
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    const auto level = static_cast<size_t>(depth);
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return false;
      commas[level + 1] = 0;
      is_object[level + 1] = c == '{';
    } else if (c == '}' || c == ']') {
      if (--depth < 0) return false;
    } else if (c == ',' && is_object[level] && ++commas[level] >= kMaxJsonKeys) {
      return false;
    }
  }
  return true;
}

}  // namespace

nlohmann::ordered_json ParseJson(std::string_view text) {
  using Json = nlohmann::ordered_json;
  if (!IsWithinLimits(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace kibitz
