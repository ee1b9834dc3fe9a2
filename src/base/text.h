// Small text helpers: strict numbers, splitting, the nearest known name, numbers for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz {

std::string_view Trim(std::string_view text);
// Pieces between separators; empty ones are kept.
std::vector<std::string_view> Split(std::string_view text, char separator);
// Words between white space; no empty ones.
std::vector<std::string_view> SplitWords(std::string_view text);
// A to Z in lower case; other bytes unchanged.
std::string LowerCase(std::string_view text);

// The whole text as a number; nothing for anything else, spaces and overflow included.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUnsigned(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);
// "2G", "512M", "64k", "100": powers of 1024.
std::optional<uint64_t> ParseBytes(std::string_view text);
// "1M", "20k", "2G", "1.5M", "100": powers of 1000.
std::optional<uint64_t> ParseCount(std::string_view text);

// Edit distance: insertions, deletions, replacements and swaps of neighbours between two texts.
int EditDistance(std::string_view a, std::string_view b);
// The known name nearest to `text`; nothing when none is near.
std::optional<std::string> NearestName(std::string_view text, std::span<const std::string> known);

// For people: 1234567 -> "1.23M", 950 -> "950".
std::string HumanCount(double count);
// 75.2 -> "1:15", 3700 -> "1:01:40".
std::string HumanSeconds(double seconds);

// Text made safe to print in a message: control bytes escaped, cut beyond `limit` bytes.
std::string Quoted(std::string_view text, size_t limit = 80);

}  // namespace kibitz
