// The random numbers of Zobrist keys, computed at compile time from one fixed seed, so that
// keys are the same in every build and may be stored in files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "games/chess/types.h"

namespace kibitz::chess::zobrist {

struct Numbers {
  std::array<std::array<uint64_t, 64>, 16> piece;  // [Piece::code()][square]; no piece is 0.
  std::array<uint64_t, 64> castling_rook;          // By square of a rook that may castle.
  std::array<uint64_t, 8> en_passant;              // By file.
  uint64_t black_to_move;
};

constexpr Numbers MakeNumbers() {
  uint64_t state = 0x6b6962697478;  // "kibitz"
  auto next = [&state] {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  Numbers n{};
  for (size_t code = 0; code < 16; ++code) {
    const size_t type = code & 7;
    if (type == 0 || type == 7) continue;
    for (uint64_t& number : n.piece[code]) number = next();
  }
  for (uint64_t& number : n.castling_rook) number = next();
  for (uint64_t& number : n.en_passant) number = next();
  n.black_to_move = next();
  return n;
}

inline constexpr Numbers kNumbers = MakeNumbers();

constexpr uint64_t OfPiece(unsigned code, Square square) {
  return kNumbers.piece[code][static_cast<size_t>(square.index())];
}

}  // namespace kibitz::chess::zobrist
