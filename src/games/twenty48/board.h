// A 2048 position: 16 tiles by rank (0 is empty, 1 is the tile 2, 11 is 2048), cell 0 in the upper
// left corner, row by row. A value of 16 bytes: a nibble for each tile, and the excess
// of large tiles.
//
//   const std::array<int, kCells> ranks = {0, 0, 1, 0, ...};
//   Board board = *Board::FromRanks(ranks);
//   if (board.MaxRank() >= 11) ...
//
// A nibble holds ranks up to 15 (32768). Larger tiles have the nibble 15 and their excess over 15
// in `extra`, two bits a cell. Rank 17 (131072) is the largest tile that can arise on 16 cells.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace kibitz::twenty48 {

inline constexpr int kCells = 16;
inline constexpr int kMaxRank = 17;

// The numbers are those of packed files.
enum class Move : uint8_t { kUp = 0, kDown = 1, kLeft = 2, kRight = 3 };
inline constexpr std::array<Move, 4> kMoves = {Move::kUp, Move::kDown, Move::kLeft, Move::kRight};

constexpr int IndexOf(Move move) { return static_cast<int>(move); }
// "up", "down", "left", "right".
std::string_view NameOf(Move move);
Result<Move> ParseMove(std::string_view name);

class Board {
 public:
  constexpr Board() = default;
  // Sixteen ranks of 0 to kMaxRank.
  static Result<Board> FromRanks(std::span<const int> ranks);
  // `packed`: cell 0 in the top nibble. `extra`: bits 2i and 2i + 1 for cell i, not 0 only where
  // the nibble is 15.
  static constexpr Board FromBits(uint64_t packed, uint32_t extra = 0) {
    Board board;
    board.packed_ = packed;
    board.extra_ = extra;
    return board;
  }

  constexpr uint64_t packed() const { return packed_; }
  constexpr uint32_t extra() const { return extra_; }

  constexpr int Rank(int cell) const {
    return static_cast<int>(packed_ >> Shift(cell) & 15) +
           static_cast<int>(extra_ >> (2 * cell) & 3);
  }
  std::array<int, kCells> Ranks() const;
  // The same board with another tile in one cell.
  Board With(int cell, int rank) const;

  // The lowest bit of each empty cell's nibble.
  constexpr uint64_t EmptyNibbles() const {
    const uint64_t any = packed_ | packed_ >> 2;
    return ~(any | any >> 1) & kLowBits;
  }
  constexpr int CountEmpty() const { return std::popcount(EmptyNibbles()); }
  int MaxRank() const;
  // The sum of all tiles: 2 + 4 + ...
  int64_t TileSum() const;
  // Bit i for a tile 65536 or larger in cell i.
  uint16_t Over32768() const;

  constexpr bool operator==(const Board&) const = default;

  // Where cell i begins in packed().
  static constexpr int Shift(int cell) { return 60 - 4 * cell; }

 private:
  static constexpr uint64_t kLowBits = 0x1111111111111111;

  uint64_t packed_ = 0;
  uint32_t extra_ = 0;
};

// The tile of a rank: 0, 2, 4, ..., 131072.
constexpr int64_t TileOf(int rank) { return rank == 0 ? 0 : int64_t{1} << rank; }

}  // namespace kibitz::twenty48
