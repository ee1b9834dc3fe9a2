#include "players/player_name.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace kibitz::players {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> Decoded(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return Bad("found {}, expected two hexadecimal digits behind %; a percent sign itself is %25",
                 Quoted(text.substr(i, 3)));
    }
    bytes += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return bytes;
}

std::string Encoded(std::string_view text, std::string_view special) {
  std::string encoded;
  for (char c : text) {
    if (c == '%' || special.find(c) != std::string_view::npos) {
      encoded += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      encoded += c;
    }
  }
  return encoded;
}

// Whether the text before a colon can be a kind: paths and drives aside, kinds are small letters.
bool LooksLikeKind(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool IsKind(std::string_view text) {
  return std::ranges::find(KindNames(), text) != KindNames().end();
}

Result<std::vector<std::pair<std::string, std::string>>> ParseOptions(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> options;
  for (std::string_view item : Split(text, '&')) {
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return Bad("found {}, expected key=value behind '?', separated by '&'", Quoted(item));
    }
    const auto key = Decoded(item.substr(0, equals));
    if (!key) return Bad("{}", key.reason());
    const auto value = Decoded(item.substr(equals + 1));
    if (!value) return Bad("{}", value.reason());
    options.emplace_back(*key, *value);
  }
  return options;
}

}  // namespace

const std::vector<std::string>& KindNames() {
  static const std::vector<std::string> names = {"decoder", "policy",  "lc0",   "search",
                                                 "engine",  "negamax", "random"};
  return names;
}

Result<PlayerName> ParsePlayerName(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return Bad("the name of a player is empty; expected KIND:PATH?key=value");
  PlayerName name;
  const size_t question = text.find('?');
  if (question != std::string_view::npos) {
    auto options = ParseOptions(text.substr(question + 1));
    if (!options) return Bad("{}", options.reason());
    name.options = *std::move(options);
    text = text.substr(0, question);
  }
  const size_t colon = text.find(':');
  if (IsKind(text)) {
    name.kind = text;
    return name;
  }
  if (colon != std::string_view::npos && LooksLikeKind(text.substr(0, colon))) {
    name.kind = text.substr(0, colon);
    if (!IsKind(name.kind)) {
      return Bad("{} is no kind of player; there are {}", Quoted(name.kind),
                 fmt::join(KindNames(), ", "));
    }
    text = text.substr(colon + 1);
  }
  auto path = Decoded(text);
  if (!path) return Bad("{}", path.reason());
  name.path = *std::move(path);
  if (name.kind.empty() && name.path.empty()) {
    return Bad("found neither a kind nor a path before '?'; expected KIND:PATH?key=value");
  }
  return name;
}

std::string ToText(const PlayerName& name) {
  std::string text = name.kind;
  if (!name.path.empty()) {
    if (!text.empty()) text += ":";
    text += Encoded(name.path, name.kind.empty() ? "?:" : "?");
  }
  char separator = '?';
  for (const auto& [key, value] : name.options) {
    text += separator + Encoded(key, "&=?") + "=" + Encoded(value, "&?");
    separator = '&';
  }
  // What reading would trim, or take for a kind.
  const auto escape = [&text](size_t at) {
    text.replace(at, 1, fmt::format("%{:02x}", static_cast<unsigned char>(text[at])));
  };
  const auto is_blank = [](char c) { return Trim(std::string_view(&c, 1)).empty(); };
  if (!text.empty() && is_blank(text.back())) escape(text.size() - 1);
  if (!text.empty() && is_blank(text.front())) escape(0);
  if (name.kind.empty() && IsKind(name.path)) escape(0);
  return text;
}

}  // namespace kibitz::players
