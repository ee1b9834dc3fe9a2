#include "base/limits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace kibitz {
namespace {

InputLimits& TheLimits() {
  static InputLimits limits;
  return limits;
}

constexpr std::array<std::pair<std::string_view, uint64_t InputLimits::*>, 6> kNames = {
    {{"line", &InputLimits::line},
     {"window", &InputLimits::window},
     {"network", &InputLimits::network},
     {"values", &InputLimits::values},
     {"columns", &InputLimits::columns},
     {"game", &InputLimits::game}}};

}  // namespace

const InputLimits& Limits() { return TheLimits(); }

void AllowInput(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  const auto size = ParseBytes(text.substr(std::min(equals + 1, text.size())));
  for (const auto& [name, field] : kNames) {
    if (name != text.substr(0, equals)) continue;
    if (!size || *size == 0) {
      throw Error::Usage("--allow {}: expected a size such as 8M or 1G", Quoted(text));
    }
    TheLimits().*field = *size;
    return;
  }
  throw Error::Usage(
      "--allow {}: expected NAME=SIZE with line, window, network, values, columns or game",
      Quoted(text));
}

std::string AllowHint(std::string_view name, uint64_t needed) {
  uint64_t size = std::bit_ceil(std::min(needed, uint64_t{1} << 63));
  std::string_view unit;
  for (std::string_view larger : {"k", "M", "G"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return fmt::format("give --allow {}={}{} if it is right", name, size, unit);
}

}  // namespace kibitz
