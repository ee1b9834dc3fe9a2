#include "io/tables/lc0_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

Json Number(float value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

}  // namespace

std::string_view InputFormatName(uint32_t input_format) {
  switch (input_format) {
    case 1:
      return "112 planes";
    case 2:
      return "112 planes, castling rooks";
    case 3:
      return "112 planes, canonical";
    case 4:
      return "112 planes, canonical, hectoplies";
    case 5:
      return "112 planes, canonical v2";
    case 132:
      return "112 planes, canonical, hectoplies, armageddon";
    case 133:
      return "112 planes, canonical v2, armageddon";
    default:
      return "unknown";
  }
}

bool LooksLikeLc0Rows(std::string_view head) {
  std::array<uint32_t, 3> numbers{};  // Version, input format, the bits of the first share.
  if (head.size() < sizeof(numbers)) return false;
  std::memcpy(numbers.data(), head.data(), sizeof(numbers));
  const auto is_share = [](uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value == -1 || (value >= 0 && value <= 1);
  };
  const uint32_t version = numbers[0];
  if (version == 3 || version == 4) return is_share(numbers[1]) && is_share(numbers[2]);
  if (version < 5 || version > 7) return false;
  return InputFormatName(numbers[1]) != "unknown" && is_share(numbers[2]);
}

Json ToTree(const Lc0Row& row) {
  Json visits = Json::array();
  for (size_t i = 0; i < kLc0RowMoves; ++i) {
    float share = 0;
    std::memcpy(&share, &row.shares[i], sizeof(share));
    if (share > 0) visits.push_back({i, share});
  }
  return {{"input_format", row.input_format},
          {"rule50", row.rule50},
          {"flags", row.flags},
          {"root_q", Number(row.root_q)},
          {"root_d", Number(row.root_d)},
          {"best_q", Number(row.best_q)},
          {"best_d", Number(row.best_d)},
          {"played_q", Number(row.played_q)},
          {"played_d", Number(row.played_d)},
          {"result_q", Number(row.result_q)},
          {"result_d", Number(row.result_d)},
          {"visits", row.visits},
          {"played", row.played},
          {"best", row.best},
          {"shares", visits}};
}

}  // namespace kibitz::io
