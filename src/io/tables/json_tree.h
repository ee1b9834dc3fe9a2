// Copies a parsed line into a tree that outlives it.
#pragma once

#include <nlohmann/json.hpp>

#include "io/tables/jsonl.h"

namespace kibitz::io {

// Lists and texts are cut after `limit` items or bytes, with a mark; 0 keeps everything.
nlohmann::ordered_json ToTree(const JsonValue& value, size_t limit = 0);

}  // namespace kibitz::io
