// JSON on standard output, one object a line. Text that is not UTF-8 (old PGN files) is written
// with replacement characters.
#pragma once

#include <nlohmann/json.hpp>

namespace kibitz::cli {

void PrintJson(const nlohmann::ordered_json& object);

}  // namespace kibitz::cli
