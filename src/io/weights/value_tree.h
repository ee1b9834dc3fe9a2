// Plain values of a .pt file, such as a config, as JSON and back.
#pragma once

#include <nlohmann/json.hpp>

#include "io/weights/value.h"

namespace kibitz::io {

// Throws Error for tensors and objects.
nlohmann::ordered_json ToTree(const Value& value);
Value FromTree(const nlohmann::ordered_json& tree);

}  // namespace kibitz::io
