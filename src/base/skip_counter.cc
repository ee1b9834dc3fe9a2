#include "base/skip_counter.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "base/log.h"

namespace kibitz {

std::string SkipPlace::Text() const {
  const std::string place = row < 0 ? file : fmt::format("{}, row {}", file, row);
  return place.empty() || detail.empty() ? place + detail : place + ": " + detail;
}

void SkipCounter::Add(const std::string& reason, const SkipPlace& place, uint64_t count) {
  if (count == 0) return;
  Entry& entry = entries_[reason];
  const bool earlier =
      place.row >= 0 && entry.first.row >= 0 &&
      std::tie(place.file, place.row) < std::tie(entry.first.file, entry.first.row);
  if (entry.count == 0 || earlier) entry.first = place;
  entry.count += count;
}

void SkipCounter::AddAndWarn(const std::string& reason, const SkipPlace& place, uint64_t count) {
  if (!entries_.contains(reason)) {
    const std::string where = place.Text();
    LogWarn("{}{}{}; skipped (more of this kind are only counted)", where,
            where.empty() ? "" : ": ", reason);
  }
  Add(reason, place, count);
}

void SkipCounter::Merge(const SkipCounter& other) {
  for (const auto& [reason, entry] : other.entries()) Add(reason, entry.first, entry.count);
}

void SkipCounter::MergeAndWarn(const SkipCounter& other) {
  for (const auto& [reason, entry] : other.entries()) AddAndWarn(reason, entry.first, entry.count);
}

uint64_t SkipCounter::CountOf(const std::string& reason) const {
  const auto found = entries_.find(reason);
  return found == entries_.end() ? 0 : found->second.count;
}

nlohmann::ordered_json SkipCounter::ToJson() const {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [reason, entry] : entries_) {
    json[reason] = {{"count", entry.count}};
    const std::string first = entry.first.Text();
    if (!first.empty()) json[reason]["first"] = first;
  }
  return json;
}

std::string SkipCounter::Text() const {
  std::string text;
  for (const auto& [reason, entry] : entries_) {
    const std::string first = entry.first.Text();
    text += fmt::format("{}{} x {}{}", text.empty() ? "" : "; ", entry.count, reason,
                        first.empty() ? "" : fmt::format(" (first: {})", first));
  }
  return text;
}

}  // namespace kibitz
