// JSON from outside. nlohmann's parser takes any depth and any number of keys, but it copies and
// prints a value with a call for each level, and looks through all keys of an object to add one:
// 100 kB of brackets would end the program, 3 MB of keys keep it busy for minutes.
//
//   const auto tree = ParseJson(text);
//   if (!tree.is_object()) throw Error("{}: no JSON object", path);
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace kibitz {

inline constexpr int kMaxJsonDepth = 128;
inline constexpr int kMaxJsonKeys = 4096;  // Of one object.

// Discarded when the text is no JSON document, or is beyond these limits.
nlohmann::ordered_json ParseJson(std::string_view text);

}  // namespace kibitz
