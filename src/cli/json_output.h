// JSON for programs: one object a line on standard output. Text that is not UTF-8 (old PGN files)
// is written with replacement characters rather than refused.
#pragma once

#include <nlohmann/json.hpp>

namespace kibitz::cli {

void PrintJson(const nlohmann::ordered_json& object);

}  // namespace kibitz::cli
