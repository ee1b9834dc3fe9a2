// Where the network without attention (net/attention_free.h) lies in the encoder's rows, and so
// which squares the encoder's norms sum. Needs no libtorch.
#pragma once

#include <cstdint>

#include "io/weights/state_dict.h"

namespace kibitz::twenty48 {

// Whether these are the weights of the network without attention, not of the encoder.
inline bool IsAttentionFree(const io::StateDict& weights) {
  return weights.Find("mix.weight") != nullptr;
}

struct AttentionFreeLayout {
  static constexpr int64_t kRanks = 17;
  static constexpr int64_t kCells = 16;
  // A row of the encoder: the rank one-hot, the cell one-hot, the tile's vector, the board's.
  static constexpr int64_t kTileFrom = kRanks + kCells;
  static constexpr double kMark = 1.5;  // The value of a one in the one-hot parts.
  static constexpr double kLength = 8;  // L2 norm of every tile's vector.
  // Sum of squares of a row without the board's vector: the same for all tiles.
  static constexpr double kFixedSquares = 2 * kMark * kMark + kLength * kLength;
};

}  // namespace kibitz::twenty48
