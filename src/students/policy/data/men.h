// The pieces of a position while it is read or checked; internal to packed_position.cc and
// fen_pieces.cc. Sets of squares are in the order of a FEN (a8 = 0, h8 = 7, h1 = 63).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "students/policy/data/packed_position.h"

namespace kibitz::policy {

struct Men {
  static constexpr uint64_t kLastRanks = 0xff000000000000ffULL;

  std::array<uint64_t, 16> sets{};    // By piece code.
  std::array<uint64_t, 2> nibbles{};  // PackedPosition::pieces.
  uint64_t occupied = 0;
  unsigned count = 0;

  void Add(unsigned code, unsigned bit) {
    const uint64_t square = uint64_t{1} << bit;
    sets[code] |= square;
    occupied |= square;
    nibbles[count >> 4 & 1] |= uint64_t{code} << (4 * (count & 15));
    ++count;
  }
  // As chess::ParseFen wants them.
  bool Sound() const {
    uint64_t white = 0;
    uint64_t black = 0;
    for (size_t code = 1; code <= 6; ++code) {
      white |= sets[code];
      black |= sets[code + 8];
    }
    return std::has_single_bit(sets[6]) && std::has_single_bit(sets[14]) &&
           ((sets[1] | sets[9]) & kLastRanks) == 0 && std::popcount(white) <= 16 &&
           std::popcount(black) <= 16 && std::popcount(sets[1]) <= 8 && std::popcount(sets[9]) <= 8;
  }
  void PutInto(PackedPosition& position) const {
    position.occupied = {static_cast<uint32_t>(occupied), static_cast<uint32_t>(occupied >> 32)};
    std::memcpy(position.pieces.data(), nibbles.data(), 16);
  }
};

}  // namespace kibitz::policy
