#include "learn/options/given_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace kibitz::learn {

std::vector<std::string> GivenKeys(const Fields& fields, std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  std::vector<std::string> keys;
  for (const std::string& name : fields.Names()) {
    if (name.starts_with(prefix) && fields.WasGiven(name)) {
      keys.push_back(name.substr(prefix.size()));
    }
  }
  return keys;
}

void CheckGivenModel(const nlohmann::ordered_json& wanted, const nlohmann::ordered_json& of_weights,
                     const std::vector<std::string>& given, const std::string& path) {
  std::string taken;
  for (const auto& [key, value] : of_weights.items()) {
    if (std::find(given.begin(), given.end(), key) == given.end()) {
      taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", key, value.dump());
    } else if (wanted.at(key) != value) {
      throw Error::Usage(
          "model.{} is {}, but the weights to start from, {}, have {}; leave the key out of "
          "[model] "
          "to take the model from them",
          key, wanted.at(key).dump(), path, value.dump());
    }
  }
  if (!taken.empty()) LogInfo("model from {}: {}", path, taken);
}

}  // namespace kibitz::learn
