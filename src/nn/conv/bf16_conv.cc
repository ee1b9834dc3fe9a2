#include "nn/conv/bf16_conv.h"

#include <algorithm>

#include "nn/kernels/bf16_dots.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kTileNumbers = 512;  // bfloat16 numbers of a tile.

// The neighbour of a square at a tap of the window, or -1 beyond the board.
int64_t NeighbourAt(int64_t square, int64_t tap, int64_t taps) {
  if (taps == 1) return square;
  const int64_t rank = square / 8 + tap / 3 - 1;
  const int64_t file = square % 8 + tap % 3 - 1;
  return rank < 0 || rank > 7 || file < 0 || file > 7 ? -1 : rank * 8 + file;
}

}  // namespace

Bf16Weights::Bf16Weights(const WindowWeights& from, ConvPass pass)
    : inputs_(PaddedPiece(pass == ConvPass::kForward ? from.inputs : from.outputs)),
      outputs_(PaddedPiece(pass == ConvPass::kForward ? from.outputs : from.inputs)),
      taps_(from.taps),
      tiles_(inputs_ * outputs_ * taps_) {
  const float* window = from.weight;
  for (int64_t output = 0; output < from.outputs; ++output) {
    for (int64_t input = 0; input < from.inputs; ++input, window += taps_) {
      // Backward: the kernel rotated by 180 degrees, inputs and outputs exchanged.
      const bool forward = pass == ConvPass::kForward;
      Bf16* to = forward ? At(output, input, 0) : At(input, output, 0);
      for (int64_t tap = 0; tap < taps_; ++tap, to += inputs_ * kAmxDepth) {
        *to = ToBf16(window[forward ? tap : taps_ - 1 - tap]);
      }
    }
  }
}

const Bf16* Bf16Weights::TilesOf(int64_t outputs, int64_t tap, int64_t inputs) const {
  const int64_t depth = inputs_ / kAmxDepth;
  return tiles_.data() + ((outputs * taps_ + tap) * depth + inputs) * 2 * kTileNumbers;
}

Bf16* Bf16Weights::At(int64_t output, int64_t input, int64_t tap) {
  const Bf16* tiles = TilesOf(output / 32, tap, input / kAmxDepth);
  const int64_t offset = output % 32 / kAmxRows * kTileNumbers + input % kAmxDepth / 2 * 32 +
                         output % kAmxRows * 2 + input % 2;
  return tiles_.data() + (tiles - tiles_.data()) + offset;
}

void PlainConvolveSquare(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z) {
  const int64_t inputs = weights.inputs();
  const int64_t taps = weights.taps();
  for (int64_t board = 0; board < kPieceBoards; ++board) {
    for (int64_t output = 0; output < weights.outputs(); ++output) {
      float sum = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t neighbour = NeighbourAt(square, tap, taps);
        if (neighbour < 0) continue;
        const Bf16* row = x + (neighbour * kPieceBoards + board) * inputs;
        for (int64_t input = 0; input < inputs; ++input) {
          const Bf16* tile = weights.TilesOf(output / 32, tap, input / kAmxDepth) +
                             output % 32 / kAmxRows * kTileNumbers;
          const Bf16 weight = tile[input % kAmxDepth / 2 * 32 + output % kAmxRows * 2 + input % 2];
          sum += FromBf16(row[input]) * FromBf16(weight);
        }
      }
      z[board * weights.outputs() + output] = sum;
    }
  }
}

void PlainAddWeightGradients(const WeightGradients& from, float* dw) {
  const auto [x, dz, inputs, outputs, taps, add] = from;
  if (!add) std::fill_n(dw, taps * inputs * outputs, 0.0F);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t square = 0; square < 64; ++square) {
      const int64_t neighbour = NeighbourAt(square, tap, taps);
      if (neighbour < 0) continue;
      for (int64_t input = 0; input < inputs; ++input) {
        float* to = dw + (tap * inputs + input) * outputs;
        for (int64_t board = 0; board < kPieceBoards; ++board) {
          const float left = FromBf16(x[(neighbour * inputs + input) * kPieceBoards + board]);
          const Bf16* row = dz + (square * kPieceBoards / 2 + board / 2) * outputs * 2 + board % 2;
          for (int64_t output = 0; output < outputs; ++output) {
            to[output] += left * FromBf16(row[output * 2]);
          }
        }
      }
    }
  }
}

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

namespace {

// GCC's tile loads do not say that they read memory: what was stored before must be there.
inline void FinishStores() { asm volatile("" ::: "memory"); }

KIBITZ_AMX inline void ZeroSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// 32 outputs of a square: sums in tiles 0 to 3, two of boards by two of outputs.
KIBITZ_AMX void ConvolveOutputs(const Bf16Weights& weights, const Bf16* x, int64_t square,
                                int64_t outputs, float* z) {
  const int64_t inputs = weights.inputs();
  const int64_t taps = weights.taps();
  const int64_t row = inputs * 2;  // Bytes.
  ZeroSums();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t neighbour = NeighbourAt(square, tap, taps);
    if (neighbour < 0) continue;
    const Bf16* left = x + neighbour * kPieceBoards * inputs;
    const Bf16* right = weights.TilesOf(outputs, tap, 0);
    for (int64_t depth = 0; depth < inputs; depth += kAmxDepth) {
      _tile_loadd(4, left + depth, row);
      _tile_stream_loadd(6, right, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_stream_loadd(7, right + kTileNumbers, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, left + kAmxRows * inputs + depth, row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      right += 2 * kTileNumbers;
    }
  }
  float* to = z + outputs * 32;
  const int64_t step = weights.outputs();
  _tile_stored(0, to, step * 4);
  _tile_stored(1, to + kAmxRows, step * 4);
  _tile_stored(2, to + kAmxRows * step, step * 4);
  _tile_stored(3, to + kAmxRows * step + kAmxRows, step * 4);
}

// What one square adds to the gradients of three neighbouring taps, 16 inputs and 32 outputs: tiles
// 0 and 1 of the tap to the left, 2 and 3 of the middle, 4 and 5 of the right. `left` points to the
// middle's inputs; tiles of neighbours are `step` numbers apart.
KIBITZ_AMX inline void MultiplySquare(const Bf16* left, int64_t step, const Bf16* right,
                                      int64_t right_row, int64_t file) {
  _tile_loadd(6, right, right_row);
  if (file > 0) {
    _tile_loadd(7, left - step, 64);
    _tile_dpbf16ps(0, 7, 6);
  }
  _tile_loadd(7, left, 64);
  _tile_dpbf16ps(2, 7, 6);
  if (file < 7) {
    _tile_loadd(7, left + step, 64);
    _tile_dpbf16ps(4, 7, 6);
  }
  _tile_loadd(6, right + 2 * kAmxRows, right_row);
  if (file > 0) {
    _tile_loadd(7, left - step, 64);
    _tile_dpbf16ps(1, 7, 6);
  }
  _tile_loadd(7, left, 64);
  _tile_dpbf16ps(3, 7, 6);
  if (file < 7) {
    _tile_loadd(7, left + step, 64);
    _tile_dpbf16ps(5, 7, 6);
  }
}

// Three taps side by side, `up` ranks from the square. The inputs of a square are read for all
// three while they are in the first cache.
KIBITZ_AMX void AddThreeTaps(const WeightGradients& from, int64_t up, int64_t input, int64_t output,
                             float* dw) {
  const int64_t row = from.outputs * 4;  // Bytes, of sums as of pairs.
  const int64_t tap = from.inputs * from.outputs;
  float* const sums = dw + (up + 1) * 3 * tap + input * from.outputs + output;
  if (from.add) {
    _tile_loadd(0, sums, row);
    _tile_loadd(1, sums + kAmxRows, row);
    _tile_loadd(2, sums + tap, row);
    _tile_loadd(3, sums + tap + kAmxRows, row);
    _tile_loadd(4, sums + 2 * tap, row);
    _tile_loadd(5, sums + 2 * tap + kAmxRows, row);
  } else {
    ZeroSums();
    _tile_zero(4);
    _tile_zero(5);
  }
  const int64_t step = from.inputs * kPieceBoards;
  const int64_t first = std::max<int64_t>(0, -up);
  const int64_t last = std::min<int64_t>(7, 7 - up);
  for (int64_t square = first * 8; square < last * 8 + 8; ++square) {
    MultiplySquare(from.x + (square + up * 8) * step + input * kPieceBoards, step,
                   from.dz + square * kPieceBoards * from.outputs + output * 2, row, square % 8);
  }
  _tile_stored(0, sums, row);
  _tile_stored(1, sums + kAmxRows, row);
  _tile_stored(2, sums + tap, row);
  _tile_stored(3, sums + tap + kAmxRows, row);
  _tile_stored(4, sums + 2 * tap, row);
  _tile_stored(5, sums + 2 * tap + kAmxRows, row);
}

// A window of 1: 32 inputs by 32 outputs.
KIBITZ_AMX void AddOneTap(const WeightGradients& from, int64_t input, int64_t output, float* dw) {
  const int64_t row = from.outputs * 4;  // Bytes, of sums as of pairs.
  float* const sums = dw + input * from.outputs + output;
  float* const lower = sums + kAmxRows * from.outputs;
  ZeroSums();
  if (from.add) {
    _tile_loadd(0, sums, row);
    _tile_loadd(1, sums + kAmxRows, row);
    _tile_loadd(2, lower, row);
    _tile_loadd(3, lower + kAmxRows, row);
  }
  for (int64_t square = 0; square < 64; ++square) {
    const Bf16* left = from.x + (square * from.inputs + input) * kPieceBoards;
    const Bf16* right = from.dz + square * kPieceBoards * from.outputs + output * 2;
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + 2 * kAmxRows, row);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kAmxRows * kPieceBoards, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, row);
  _tile_stored(1, sums + kAmxRows, row);
  _tile_stored(2, lower, row);
  _tile_stored(3, lower + kAmxRows, row);
}

void AddNineTaps(const WeightGradients& from, float* dw) {
  for (int64_t up = -1; up <= 1; ++up) {
    for (int64_t input = 0; input < from.inputs; input += kAmxRows) {
      for (int64_t output = 0; output < from.outputs; output += 2 * kAmxRows) {
        AddThreeTaps(from, up, input, output, dw);
      }
    }
  }
}

void ConvolveByTiles(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z) {
  FinishStores();
  for (int64_t outputs = 0; outputs < weights.outputs() / 32; ++outputs) {
    ConvolveOutputs(weights, x, square, outputs, z);
  }
  FinishStores();
}

void AddGradientsByTiles(const WeightGradients& from, float* dw) {
  FinishStores();
  if (from.taps == 9) {
    AddNineTaps(from, dw);
  } else {
    for (int64_t input = 0; input < from.inputs; input += 2 * kAmxRows) {
      for (int64_t output = 0; output < from.outputs; output += 2 * kAmxRows) {
        AddOneTap(from, input, output, dw);
      }
    }
  }
  FinishStores();
}

// 32 outputs of 8 boards of a square.
KIBITZ_AVX512_BF16 void ConvolveDots(const Bf16Weights& weights, const Bf16* x, int64_t square,
                                     int64_t outputs, float* z) {
  const int64_t inputs = weights.inputs();
  DotSums<kDotRows, 2> sums;
  sums.Clear();
  for (int64_t tap = 0; tap < weights.taps(); ++tap) {
    const int64_t neighbour = NeighbourAt(square, tap, weights.taps());
    if (neighbour < 0) continue;
    const Bf16* left = x + neighbour * kPieceBoards * inputs;
    const Bf16* right = weights.TilesOf(outputs, tap, 0);
    for (int64_t depth = 0; depth < inputs; depth += kAmxDepth, right += 2 * kTileNumbers) {
      sums.Add({left + depth, inputs}, {right, 2 * kAmxRows, kTileNumbers});
    }
  }
  for (int64_t i = 0; i < kDotRows; ++i) {
    float* to = z + i * weights.outputs() + outputs * 32;
    _mm512_storeu_ps(to, sums.of[i][0]);
    _mm512_storeu_ps(to + kAmxRows, sums.of[i][1]);
  }
}

void ConvolveByDots(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z) {
  for (int64_t outputs = 0; outputs < weights.outputs() / 32; ++outputs) {
    for (int64_t board = 0; board < kPieceBoards; board += kDotRows) {
      ConvolveDots(weights, x + board * weights.inputs(), square, outputs,
                   z + board * weights.outputs());
    }
  }
}

// 8 inputs by 32 outputs of a tap, over all squares.
KIBITZ_AVX512_BF16 void AddTapByDots(const WeightGradients& from, int64_t tap, int64_t input,
                                     int64_t output, float* dw) {
  float* const to = dw + (tap * from.inputs + input) * from.outputs + output;
  DotSums<kDotRows, 2> sums;
  sums.Clear();
  if (from.add) {
    for (int64_t i = 0; i < kDotRows; ++i) {
      sums.of[i][0] = _mm512_loadu_ps(to + i * from.outputs);
      sums.of[i][1] = _mm512_loadu_ps(to + i * from.outputs + kAmxRows);
    }
  }
  for (int64_t square = 0; square < 64; ++square) {
    const int64_t neighbour = NeighbourAt(square, tap, from.taps);
    if (neighbour < 0) continue;
    sums.Add({from.x + (neighbour * from.inputs + input) * kPieceBoards, kPieceBoards},
             {from.dz + square * kPieceBoards * from.outputs + output * 2, from.outputs * 2,
              2 * kAmxRows});
  }
  for (int64_t i = 0; i < kDotRows; ++i) {
    _mm512_storeu_ps(to + i * from.outputs, sums.of[i][0]);
    _mm512_storeu_ps(to + i * from.outputs + kAmxRows, sums.of[i][1]);
  }
}

void AddGradientsByDots(const WeightGradients& from, float* dw) {
  for (int64_t output = 0; output < from.outputs; output += 2 * kAmxRows) {
    for (int64_t input = 0; input < from.inputs; input += kDotRows) {
      for (int64_t tap = 0; tap < from.taps; ++tap) AddTapByDots(from, tap, input, output, dw);
    }
  }
}

}  // namespace

void ConvolveSquare(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z) {
  if (HasAmx()) return ConvolveByTiles(weights, x, square, z);
  HasAvx512Bf16() ? ConvolveByDots(weights, x, square, z)
                  : PlainConvolveSquare(weights, x, square, z);
}

void AddWeightGradients(const WeightGradients& from, float* dw) {
  if (HasAmx()) return AddGradientsByTiles(from, dw);
  HasAvx512Bf16() ? AddGradientsByDots(from, dw) : PlainAddWeightGradients(from, dw);
}

#else

void ConvolveSquare(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z) {
  PlainConvolveSquare(weights, x, square, z);
}
void AddWeightGradients(const WeightGradients& from, float* dw) {
  PlainAddWeightGradients(from, dw);
}

#endif

}  // namespace kibitz::nn
