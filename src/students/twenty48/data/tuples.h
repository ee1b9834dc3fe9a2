// The patterns of the tuple network (net/tuple_net.h): the four rows, the four columns and the nine
// squares of a board. The tiles of a pattern are one of 15^4 entries of its part of a table. Needs
// no libtorch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "games/twenty48/board.h"
#include "io/weights/state_dict.h"

namespace kibitz::twenty48 {

inline constexpr int kTuples = 17;
inline constexpr int kTupleRanks = 15;  // Tiles beyond 16384 count as 16384.
inline constexpr int64_t kTupleEntries =
    int64_t{kTupleRanks} * kTupleRanks * kTupleRanks * kTupleRanks;  // Of one pattern.

using TupleCells = std::array<uint8_t, 4>;
constexpr std::array<TupleCells, kTuples> AllTuples() {
  std::array<TupleCells, kTuples> all{};
  size_t n = 0;
  const auto add = [&](int first, int step_a, int step_b) {
    all[n++] = {static_cast<uint8_t>(first), static_cast<uint8_t>(first + step_a),
                static_cast<uint8_t>(first + step_b),
                static_cast<uint8_t>(first + step_a + step_b)};
  };
  for (int row = 0; row < 4; ++row) add(4 * row, 1, 2);
  for (int column = 0; column < 4; ++column) add(column, 4, 8);
  for (int corner : {0, 1, 2, 4, 5, 6, 8, 9, 10}) add(corner, 1, 4);
  return all;
}
inline constexpr std::array<TupleCells, kTuples> kTupleCells = AllTuples();

// The encoder's rows: row 0 is the board's, the patterns have the others. Sixteen rows suit the
// attention kernels, so the last two squares share the rows of the first two patterns.
inline constexpr int kTupleRows = 16;
constexpr int RowOfTuple(int tuple) { return 1 + tuple % (kTupleRows - 1); }

// The table's entry for the pattern's tiles, among those of all patterns.
inline int64_t TupleEntry(const Board& board, int tuple) {
  int64_t entry = tuple;
  for (const uint8_t cell : kTupleCells[static_cast<size_t>(tuple)]) {
    entry = entry * kTupleRanks + std::min(board.Rank(cell), kTupleRanks - 1);
  }
  return entry;
}

inline bool IsTupleNet(const io::StateDict& weights) {
  return weights.Find("tuples.weight") != nullptr;
}
// Of a tuple network.
inline bool HasAttention(const io::StateDict& weights) {
  return weights.Find("blocks.0.attn.wq.weight") != nullptr;
}

}  // namespace kibitz::twenty48
