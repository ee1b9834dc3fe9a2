// The backward pass of winograd.h, for training: from the gradients of outputs to those of
// products, and from the gradients of taps to those of inputs. Each function XBackward here is the
// transpose of X there.
//
// Letters as in winograd.h; everything works on kLanes channels at once.
#pragma once

#include <array>
#include <cstdint>

#include "nn/conv/winograd.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn::winograd {

// Four gradients of outputs to six of products.
struct OutputLineBackward : TapLine {
  OutputLineBackward(const float* from, int64_t step) {
    const Lanes y0 = Load(from);
    const Lanes y1 = Load(from + step);
    const Lanes y2 = Load(from + 2 * step);
    const Lanes y3 = Load(from + 3 * step);
    const Lanes even_a = y0 + y2 * kA2;
    const Lanes odd_a = (y1 + y3 * kA2) * kA;
    const Lanes even_b = y0 + y2 * kB2;
    const Lanes odd_b = (y1 + y3 * kB2) * kB;
    v0 = y0;
    v1 = even_a + odd_a;
    v2 = even_a - odd_a;
    v3 = even_b + odd_b;
    v4 = even_b - odd_b;
    v5 = y3;
  }
};

// The gradients of a tile's 4x4 outputs to those of its 36 products. `from` is the tile's first
// square; squares are `row` floats apart, taps `tap_step`.
inline void TransformOutputBackward(const float* from, int64_t row, float* taps, int64_t tap_step) {
  alignas(64) std::array<float, kSide * kOutputSide * kLanes> between;  // (row taps, columns)
  for (int64_t column = 0; column < kOutputSide; ++column) {
    OutputLineBackward(from + column * row, kBoardSide * row)
        .Write(between.data() + column * kLanes, kOutputSide * kLanes);
  }
  for (int64_t i = 0; i < kSide; ++i) {
    OutputLineBackward(between.data() + i * kOutputSide * kLanes, kLanes)
        .Write(taps + i * kSide * tap_step, tap_step);
  }
}

// Six gradients of taps to six of inputs, whichever end of the line lies beyond the board.
struct InputLineBackward {
  Lanes d0, d1, d2, d3, d4, d5;

  InputLineBackward(const float* from, int64_t step) {
    const Lanes v0 = Load(from);
    const Lanes v1 = Load(from + step);
    const Lanes v2 = Load(from + 2 * step);
    const Lanes v3 = Load(from + 3 * step);
    const Lanes v4 = Load(from + 4 * step);
    const Lanes v5 = Load(from + 5 * step);
    const Lanes even_a = v1 + v2;
    const Lanes odd_a = (v1 - v2) * kA;
    const Lanes even_b = v3 + v4;
    const Lanes odd_b = (v3 - v4) * kB;
    d0 = v0;
    d1 = v5 - odd_a * kB2 - odd_b * kA2;
    d2 = -(v0 * kSum) - even_a * kB2 - even_b * kA2;
    d3 = odd_a + odd_b - v5 * kSum;
    d4 = v0 + even_a + even_b;
    d5 = v5;
  }
};

// The same for a whole line of the board: eight gradients from the taps of the two tiles that share
// it. `first` and `last` point to their taps.
inline void BoardLineBackward(const float* first, const float* last, int64_t step, float* to,
                              int64_t to_step) {
  const InputLineBackward a(first, step);
  const InputLineBackward b(last, step);
  Store(to, a.d1);
  Store(to + to_step, a.d2);
  Store(to + 2 * to_step, a.d3);
  Store(to + 3 * to_step, a.d4 + b.d0);
  Store(to + 4 * to_step, a.d5 + b.d1);
  Store(to + 5 * to_step, b.d2);
  Store(to + 6 * to_step, b.d3);
  Store(to + 7 * to_step, b.d4);
}

// The gradients of the taps of a board's four tiles to those of its 64 squares. Tiles are
// `tile_step` floats apart, taps `tap_step`, squares `row`.
inline void TransformInputBackward(const float* taps, int64_t tile_step, int64_t tap_step,
                                   float* board, int64_t row) {
  constexpr int64_t kLine = kBoardSide * kLanes;
  alignas(64) std::array<float, 2 * kSide * kLine> between;  // (2 tiles, row taps, columns)
  for (int64_t i = 0; i < 2 * kSide; ++i) {
    const float* left = taps + i / kSide * 2 * tile_step + i % kSide * kSide * tap_step;
    BoardLineBackward(left, left + tile_step, tap_step, between.data() + i * kLine, kLanes);
  }
  for (int64_t column = 0; column < kBoardSide; ++column) {
    const float* upper = between.data() + column * kLanes;
    BoardLineBackward(upper, upper + kSide * kLine, kLine, board + column * row, kBoardSide * row);
  }
}

}  // namespace kibitz::nn::winograd
