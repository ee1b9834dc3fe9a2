#include "oracles/records/skipped.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace kibitz::oracles {

void Skipped::Add(const std::string& reason, const std::string& place, bool warn) {
  Tally& tally = tallies_[reason];
  if (tally.count++ > 0) return;
  tally.first = place;
  if (warn) LogWarn("{}: {}; skipped, as others will be for this reason", place, reason);
}

int64_t Skipped::CountOf(const std::string& reason) const {
  const auto found = tallies_.find(reason);
  return found == tallies_.end() ? 0 : found->second.count;
}

nlohmann::ordered_json Skipped::ToJson() const {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [reason, tally] : tallies_) {
    json[reason] = {{"count", tally.count}, {"first", tally.first}};
  }
  return json;
}

}  // namespace kibitz::oracles
