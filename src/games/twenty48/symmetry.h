// The eight symmetries of a board: rotations and reflections of Board::packed(), nibble by nibble.
#pragma once

#include <array>
#include <cstdint>

namespace kibitz::twenty48 {

// Rows become columns.
constexpr uint64_t Transpose(uint64_t x) {
  const uint64_t a =
      (x & 0xF0F00F0FF0F00F0F) | (x & 0x0000F0F00000F0F0) << 12 | (x & 0x0F0F00000F0F0000) >> 12;
  return (a & 0xFF00FF0000FF00FF) | (a & 0x00FF00FF00000000) >> 24 | (a & 0x00000000FF00FF00) << 24;
}

// Left becomes right.
constexpr uint64_t Mirror(uint64_t x) {
  const uint64_t pairs = (x & 0xFF00FF00FF00FF00) >> 8 | (x & 0x00FF00FF00FF00FF) << 8;
  return (pairs & 0xF0F0F0F0F0F0F0F0) >> 4 | (pairs & 0x0F0F0F0F0F0F0F0F) << 4;
}

// Up becomes down.
constexpr uint64_t Flip(uint64_t x) {
  const uint64_t halves = x >> 32 | x << 32;
  return (halves & 0xFFFF0000FFFF0000) >> 16 | (halves & 0x0000FFFF0000FFFF) << 16;
}

constexpr std::array<uint64_t, 8> Views(uint64_t x) {
  const uint64_t mirrored = Mirror(x);
  const uint64_t flipped = Flip(x);
  const uint64_t rotated = Flip(mirrored);
  return {x,
          mirrored,
          flipped,
          rotated,
          Transpose(x),
          Transpose(mirrored),
          Transpose(flipped),
          Transpose(rotated)};
}

}  // namespace kibitz::twenty48
