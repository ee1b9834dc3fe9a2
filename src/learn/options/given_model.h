// The [model] section of a run that starts from weights. The weights fix the model's shape: a key
// that the user gives must agree with them, and the others are taken from them.
//
//   NetConfig model = learn::ModelOfWeights(options.model, of_weights, options.given_model, path);
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace kibitz::learn {

// Keys of a section that a flag or a config file set, without the section's name.
std::vector<std::string> GivenKeys(const Fields& fields, std::string_view section);

// Throws Error::Usage when a given key differs from that of the weights at `path`; else logs that
// the model is taken from there.
void CheckGivenModel(const nlohmann::ordered_json& wanted, const nlohmann::ordered_json& of_weights,
                     const std::vector<std::string>& given, const std::string& path);

// The model of the weights, checked. `Config` has FieldsOf.
template <typename Config>
Config ModelOfWeights(Config wanted, Config of_weights, const std::vector<std::string>& given,
                      const std::string& path) {
  CheckGivenModel(FieldsOf(wanted).ToTree(), FieldsOf(of_weights).ToTree(), given, path);
  return of_weights;
}

}  // namespace kibitz::learn
