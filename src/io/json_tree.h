// Trees that can be kept, changed and written: of a parsed line, and of the plain values of a .pt
// file.
#pragma once

#include <nlohmann/json.hpp>

#include "io/jsonl.h"
#include "io/value.h"

namespace kibitz::io {

// Lists and texts are cut after `limit` items or bytes, with a mark; 0 keeps everything.
nlohmann::ordered_json ToTree(const JsonValue& value, size_t limit = 0);

// Plain values of a .pt file, such as a config. Throws Error for tensors and objects.
nlohmann::ordered_json ToTree(const Value& value);
Value FromTree(const nlohmann::ordered_json& tree);

}  // namespace kibitz::io
