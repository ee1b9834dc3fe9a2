#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kibitz {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (true) {
    while (at < text.size() && IsSpace(text[at])) ++at;
    if (at == text.size()) return words;
    const size_t start = at;
    while (at < text.size() && !IsSpace(text[at])) ++at;
    words.push_back(text.substr(start, at - start));
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower;
}

std::optional<int64_t> ParseInt(std::string_view text) { return ParseNumber<int64_t>(text); }
std::optional<uint64_t> ParseUnsigned(std::string_view text) { return ParseNumber<uint64_t>(text); }
std::optional<double> ParseDouble(std::string_view text) { return ParseNumber<double>(text); }

std::optional<uint64_t> ParseBytes(std::string_view text) {
  int power = 0;
  if (!text.empty()) {
    const size_t unit = std::string_view("kmgt").find(static_cast<char>(text.back() | 0x20));
    if (unit != std::string_view::npos) {
      power = static_cast<int>(unit) + 1;
      text.remove_suffix(1);
    }
  }
  const auto count = ParseUnsigned(text);
  if (!count || *count > (~uint64_t{0} >> (10 * power))) return std::nullopt;
  return *count << (10 * power);
}

std::optional<uint64_t> ParseCount(std::string_view text) {
  double factor = 1;
  if (!text.empty()) {
    const size_t unit = std::string_view("kmgt").find(static_cast<char>(text.back() | 0x20));
    if (unit != std::string_view::npos) {
      for (size_t i = 0; i <= unit; ++i) factor *= 1000;
      text.remove_suffix(1);
    }
  }
  if (factor == 1) return ParseUnsigned(text);
  const auto count = ParseDouble(text);
  if (!count || !(*count >= 0) || *count * factor >= 1e18) return std::nullopt;
  return static_cast<uint64_t>(std::llround(*count * factor));
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> NearestName(std::string_view text, std::span<const std::string> known) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& name : known) {
    // A word left out of a longer name, or the part after a section's dot, counts as near.
    const bool part = (text.size() >= 3 && name.find(text) != std::string::npos) ||
                      (name.size() >= 3 && text.find(name) != std::string_view::npos);
    const int distance = part ? 1 : EditDistance(text, name);
    if (best == nullptr || distance < best_distance) {
      best = &name;
      best_distance = distance;
    }
  }
  const int near = std::max(2, static_cast<int>(text.size()) / 3);
  if (best == nullptr || best_distance > near) return std::nullopt;
  return *best;
}

std::string HumanCount(double count) {
  constexpr std::string_view kUnits = " kMGTP";
  size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.{}f}", count, count == std::floor(count) ? 0 : 1);
  const int digits = std::abs(count) < 9.995 ? 2 : std::abs(count) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", count, digits, kUnits[unit]);
}

std::string HumanSeconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  if (total >= 3600) {
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  }
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string Quoted(std::string_view text, size_t limit) {
  std::string out = "'";
  for (size_t i = 0; i < text.size() && i < limit; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += text[i];
    }
  }
  out += text.size() > limit ? "'..." : "'";
  return out;
}

}  // namespace kibitz
