// Winograd's F(4x4, 3x3): four by four outputs of a 3x3 window from six by six inputs with 36
// multiplications instead of 144. A board of 8x8 is four such tiles exactly. Along a line, six
// numbers become the values of a polynomial at the points 0, a, -a, b, -b and infinity ("taps"),
// where convolution is a product of values; both sides are transformed along columns, then rows.
//
// Letters: d inputs of a line, m products, g weights. Everything works on kLanes channels at once.
#pragma once

#include <array>
#include <cstdint>

#include "nn/kernels/lanes.h"

namespace kibitz::nn::winograd {

inline constexpr int64_t kSide = 6;  // Of a tile's inputs.
inline constexpr int64_t kTaps = kSide * kSide;
inline constexpr int64_t kOutputSide = 4;
inline constexpr int64_t kBoardTiles = 4;
inline constexpr int64_t kBoardSide = 8;

// From one tap of some tiles to the next, in floats: (36, tiles, row) with a cache line between,
// for lines that are a multiple of 4096 bytes apart push each other out of the first cache.
constexpr int64_t TapStep(int64_t tiles, int64_t row) { return tiles * row + 16; }

// With a b = 1 numbers have about the same size at all points, and the factor a^2 b^2 falls away.
inline constexpr float kA = 0.70710678118654752F;
inline constexpr float kB = 1.41421356237309505F;
inline constexpr float kA2 = 0.5F;
inline constexpr float kB2 = 2.0F;
inline constexpr float kSum = kA2 + kB2;

// Which end of a tile's line lies beyond the board, where all is 0.
enum class Edge { kFirst, kLast };

// The six taps of a line.
struct TapLine {
  Lanes v0, v1, v2, v3, v4, v5;

  void Write(float* to, int64_t step) const {
    Store(to, v0);
    Store(to + step, v1);
    Store(to + 2 * step, v2);
    Store(to + 3 * step, v3);
    Store(to + 4 * step, v4);
    Store(to + 5 * step, v5);
  }
};

// The taps of one line of inputs. kBeyond == kFirst: d0 is not read; kLast: d5 is not.
template <Edge kBeyond>
struct InputLine : TapLine {
  // `step`: distance between the numbers; from points to d0.
  InputLine(const float* from, int64_t step) {
    const Lanes d1 = Load(from + step);
    const Lanes d2 = Load(from + 2 * step);
    const Lanes d3 = Load(from + 3 * step);
    const Lanes d4 = Load(from + 4 * step);
    v0 = d4 - d2 * kSum;
    v5 = d1 - d3 * kSum;
    if constexpr (kBeyond == Edge::kFirst) {
      v5 += Load(from + 5 * step);
    } else {
      v0 += Load(from);
    }
    const Lanes even_a = d4 - d2 * kB2;
    const Lanes odd_a = (d3 - d1 * kB2) * kA;
    const Lanes even_b = d4 - d2 * kA2;
    const Lanes odd_b = (d3 - d1 * kA2) * kB;
    v1 = even_a + odd_a;
    v2 = even_a - odd_a;
    v3 = even_b + odd_b;
    v4 = even_b - odd_b;
  }
};

// The four outputs of one line of products. First along rows, then along columns.
struct OutputLine {
  Lanes y0, y1, y2, y3;

  OutputLine(const float* from, int64_t step) {
    const Lanes m1 = Load(from + step);
    const Lanes m2 = Load(from + 2 * step);
    const Lanes m3 = Load(from + 3 * step);
    const Lanes m4 = Load(from + 4 * step);
    const Lanes even_a = m1 + m2;
    const Lanes odd_a = (m1 - m2) * kA;
    const Lanes even_b = m3 + m4;
    const Lanes odd_b = (m3 - m4) * kB;
    y0 = Load(from) + even_a + even_b;
    y1 = odd_a + odd_b;
    y2 = even_a * kA2 + even_b * kB2;
    y3 = Load(from + 5 * step) + odd_a * kA2 + odd_b * kB2;
  }
  void Write(float* to, int64_t step) const {
    Store(to, y0);
    Store(to + step, y1);
    Store(to + 2 * step, y2);
    Store(to + 3 * step, y3);
  }
};

// One tile of kLanes channels to its taps. `board` is the first square; squares are `row` floats
// apart, taps `tap_step`. Rows of the tile begin one before the board's, or at its row 3.
template <Edge kBeyondRow, Edge kBeyondColumn>
inline void TransformInput(const float* board, int64_t row, float* taps, int64_t tap_step) {
  constexpr int64_t kFirstRow = kBeyondRow == Edge::kFirst ? -1 : 3;
  constexpr int64_t kFirstColumn = kBeyondColumn == Edge::kFirst ? -1 : 3;
  constexpr int64_t kFrom = kBeyondColumn == Edge::kFirst ? 1 : 0;
  alignas(64) std::array<float, kTaps * kLanes> between;  // (row taps, columns)
  const float* first = board + (kFirstRow * kBoardSide + kFirstColumn) * row;
  for (int64_t column = kFrom; column < kFrom + kSide - 1; ++column) {
    InputLine<kBeyondRow>(first + column * row, kBoardSide * row)
        .Write(between.data() + column * kLanes, kSide * kLanes);
  }
  for (int64_t i = 0; i < kSide; ++i) {
    InputLine<kBeyondColumn>(between.data() + i * kSide * kLanes, kLanes)
        .Write(taps + i * kSide * tap_step, tap_step);
  }
}

// Any of a board's four tiles to its taps, all channels. `row` is a multiple of kLanes.
inline void TransformTile(const float* board, int64_t tile, int64_t row, float* taps,
                          int64_t tap_step) {
  using enum Edge;
  for (int64_t c = 0; c < row; c += kLanes) {
    switch (tile) {
      case 0:
        TransformInput<kFirst, kFirst>(board + c, row, taps + c, tap_step);
        break;
      case 1:
        TransformInput<kFirst, kLast>(board + c, row, taps + c, tap_step);
        break;
      case 2:
        TransformInput<kLast, kFirst>(board + c, row, taps + c, tap_step);
        break;
      default:
        TransformInput<kLast, kLast>(board + c, row, taps + c, tap_step);
    }
  }
}

// The taps of a tile's products to its 4x4 outputs, kLanes channels: the sums plus `offset`. `to`
// is the tile's first square; squares are `row` floats apart, taps `tap_step`.
inline void TransformOutput(const float* taps, int64_t tap_step, Lanes offset, float* to,
                            int64_t row) {
  alignas(64) std::array<float, kSide * kOutputSide * kLanes> between;  // (row taps, columns)
  for (int64_t i = 0; i < kSide; ++i) {
    OutputLine(taps + i * kSide * tap_step, tap_step)
        .Write(between.data() + i * kOutputSide * kLanes, kLanes);
  }
  for (int64_t column = 0; column < kOutputSide; ++column) {
    OutputLine line(between.data() + column * kLanes, kOutputSide * kLanes);
    line.y0 += offset;
    line.y1 += offset;
    line.y2 += offset;
    line.y3 += offset;
    line.Write(to + column * row, kBoardSide * row);
  }
}

// The taps of a 3x3 window's weights: (3, 3) to (6, 6).
std::array<float, kTaps> TransformWeights(const float* window);

}  // namespace kibitz::nn::winograd
