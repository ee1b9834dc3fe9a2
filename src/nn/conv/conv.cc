#include "nn/conv/conv.h"

#include <algorithm>

#include "base/check.h"
#include "nn/conv/winograd.h"
#include "nn/kernels/cached_gemm.h"

namespace kibitz::nn {
namespace {

using winograd::kBoardSide;
using winograd::kBoardTiles;
using winograd::kOutputSide;
using winograd::kSide;
using winograd::kTaps;
using winograd::TapStep;

// From one tile to the next: no multiple of 4096 bytes.
constexpr int64_t kProductStep = (kSide + 1) * kTileColumns;
constexpr int64_t kLineStep = (kSide * kOutputSide + 1) * kTileColumns;

// All tiles of x to their taps, (36, T, row) with taps TapStep apart.
void TransformInputs(int64_t positions, const float* x, int64_t row, float* taps) {
  const int64_t tiles = positions * kBoardTiles;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    winograd::TransformTile(x + tile / kBoardTiles * kSquares * row, tile % kBoardTiles, row,
                            taps + tile * row, TapStep(tiles, row));
  }
}

// A line of six products to four outputs, for `width` channels of all tiles.
void TransformProducts(int64_t line, int64_t tiles, int64_t width, ConvRoom& room) {
  const float* from = room.products.data();
  float* to = room.lines.data() + line * kOutputSide * kTileColumns;
  for (int64_t tile = 0; tile < tiles; ++tile, from += kProductStep, to += kLineStep) {
    for (int64_t i = 0; i < width; i += kLanes) {
      winograd::OutputLine(from + i, kTileColumns).Write(to + i, kTileColumns);
    }
  }
}

}  // namespace

Conv::Conv(const ConvWeights& weights, FloatPool& pool)
    : inputs_(weights.inputs), outputs_(weights.outputs) {
  CHECK(weights.size == 1 || weights.size == 3);
  CHECK(static_cast<int64_t>(weights.weight.size()) ==
        inputs_ * outputs_ * weights.size * weights.size);
  CHECK(static_cast<int64_t>(weights.bias.size()) == outputs_);
  if (weights.size == 1) {
    pointwise_ = CachedLinear({inputs_, outputs_, weights.weight, weights.bias});
  } else {
    PackTaps(weights, pool);
  }
}

void Conv::PackTaps(const ConvWeights& weights, FloatPool& pool) {
  float* packed = pool.Take(PaddedChannels(outputs_) * kTaps * inputs_);
  taps_ = packed;
  bias_ = AlignedArray<float>(PaddedChannels(outputs_));
  std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
  for (int64_t n = 0; n < outputs_; ++n) {
    const Panel panel = PanelOf(n);
    float* to = packed + panel.first * kTaps * inputs_ + n - panel.first;
    for (int64_t k = 0; k < inputs_; ++k) {
      const auto taps = winograd::TransformWeights(weights.weight.data() + (n * inputs_ + k) * 9);
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        to[(tap * inputs_ + k) * panel.width] = taps[static_cast<size_t>(tap)];
      }
    }
  }
}

size_t Conv::memory_bytes() const {
  return pointwise_.memory_bytes() + static_cast<size_t>(bias_.size() * 4 * (1 + kTaps * inputs_));
}

double Conv::ProductFlops() const {
  const int64_t products = bias_.size() > 0 ? kTaps * kBoardTiles : kSquares;
  return 2.0 * static_cast<double>(products * inputs_ * outputs_);
}

void Conv::Run(int64_t positions, const float* x, float* y, const ConvFinish& finish,
               ConvRoom& room) const {
  const int64_t row = PaddedChannels(inputs_);
  if (bias_.size() == 0) {
    CHECK(finish.skip == nullptr);
    return pointwise_.Run({.count = positions * kSquares,
                           .x = x,
                           .x_row = row,
                           .y = y,
                           .y_row = PaddedChannels(outputs_)},
                          finish.activation);
  }
  Prepare(positions, x, room);
  for (int64_t channel = 0; channel < outputs_; channel += kTileColumns) {
    RunPanel(PanelOf(channel), positions * kBoardTiles, y, finish, room);
  }
}

void Conv::RunPart(const ConvPart& part, const float* x, float* y, const ConvFinish& finish,
                   ConvRoom& room) const {
  CHECK(bias_.size() > 0);
  const int64_t begin = panels() * part.index / part.count;
  const int64_t end = panels() * (part.index + 1) / part.count;
  if (begin == end) return;
  Prepare(1, x, room);
  for (int64_t panel = begin; panel < end; ++panel) {
    RunPanel(PanelOf(panel * kTileColumns), kBoardTiles, y, finish, room);
  }
}

void Conv::Prepare(int64_t positions, const float* x, ConvRoom& room) const {
  const int64_t row = PaddedChannels(inputs_);
  const int64_t tiles = positions * kBoardTiles;
  room.lines.Reserve(tiles * kLineStep);
  room.taps.Reserve(kTaps * TapStep(tiles, row));
  room.products.Reserve(tiles * kProductStep);
  TransformInputs(positions, x, row, room.taps.data());
}

Conv::Panel Conv::PanelOf(int64_t channel) const {
  const int64_t first = channel / kTileColumns * kTileColumns;
  return {first, std::min(kTileColumns, bias_.size() - first)};
}

void Conv::RunPanel(const Panel& panel, int64_t tiles, float* y, const ConvFinish& finish,
                    ConvRoom& room) const {
  for (int64_t line = 0; line < kSide; ++line) {
    if (panel.width == kTileColumns) {
      MultiplyLine<2>(panel, line, tiles, room);
    } else {
      MultiplyLine<1>(panel, line, tiles, room);
    }
    TransformProducts(line, tiles, panel.width, room);
  }
  WriteOutputs(panel, tiles, y, finish, room);
}

namespace {

// Rows of one or two vectors of sums.
template <int64_t kRows, int64_t kVectors>
struct Sums : TileSums<kRows> {
  void AddRow(const float* a, int64_t a_row, const float* b) {
    this->Add(a, a_row, Load(b), Load(b + kLanes));
  }
};
template <int64_t kRows>
struct Sums<kRows, 1> : VectorSums<kRows> {
  void AddRow(const float* a, int64_t a_row, const float* b) { this->Add(a, a_row, Load(b)); }
};

// GemmRows with packed weights and neighbouring columns of `a`. Each of the first `fetch` steps
// prefetches a cache line of the `next` weights, so that they arrive while these are used.
template <int64_t kRows, int64_t kVectors>
inline void PrefetchingGemmRows(const Gemm& gemm, const float* next, int64_t fetch) {
  constexpr int64_t kWidth = kVectors * kLanes;
  Sums<kRows, kVectors> sums;
  const float* column = gemm.a.data;
  const int64_t a_row = gemm.a.row;
  const float* b = gemm.b;
  const float* const last = column + gemm.depth;
  for (const float* const end = column + fetch; column < end; ++column) {
    __builtin_prefetch(next);
    sums.AddRow(column, a_row, b);
    b += kWidth;
    next += kWidth;
  }
  for (; column < last; ++column, b += kWidth) sums.AddRow(column, a_row, b);
  sums.Write(gemm.c, gemm.c_row);
}

// Tiles of the next product. The number of tiles is a multiple of 4, so 6 at a time leaves 2 or 4;
// 4 and 4 are faster than 6 and 2.
int64_t RowsOf(int64_t tiles_left) {
  return tiles_left == 8 || tiles_left < kTileRows ? 4 : kTileRows;
}

}  // namespace

// For each of a line's taps a product of (T, C) and (C, width).
template <int64_t kVectors>
void Conv::MultiplyLine(const Panel& panel, int64_t line, int64_t tiles, ConvRoom& room) const {
  constexpr int64_t kWidth = kVectors * kLanes;
  const int64_t row = PaddedChannels(inputs_);
  const int64_t size = inputs_ * kWidth;
  for (int64_t i = 0; i < kSide; ++i) {
    const int64_t tap = line * kSide + i;
    const float* a = room.taps.data() + tap * TapStep(tiles, row);
    const float* b = taps_ + panel.first * kTaps * inputs_ + tap * size;
    const float* next = b + size;  // Only a hint; may point past the last layer.
    float* c = room.products.data() + i * kTileColumns;
    for (int64_t tile = 0; tile < tiles;) {
      const int64_t rows = RowsOf(tiles - tile);
      const int64_t fetch = std::min(inputs_, inputs_ * rows / tiles + 1);
      const Gemm gemm = {.a = {.data = a, .row = row},
                         .b = b,
                         .b_row = kWidth,
                         .c = c,
                         .c_row = kProductStep,
                         .rows = rows,
                         .depth = inputs_};
      if (rows == kTileRows) {
        PrefetchingGemmRows<kTileRows, kVectors>(gemm, next, fetch);
      } else {
        PrefetchingGemmRows<4, kVectors>(gemm, next, fetch);
      }
      tile += rows;
      a += rows * row;
      c += rows * kProductStep;
      next += fetch * kWidth;
    }
  }
}

namespace {

// Applies a ConvFinish to one tile's outputs and writes them. `to` points to its first square.
template <bool kSkip, typename Activate>
inline void WriteTile(const float* lines, const float* bias, const float* skip, float* to,
                      int64_t row, int64_t width, const Activate& activate) {
  const int64_t rank = kBoardSide * row;
  for (int64_t i = 0; i < width; i += kLanes) {
    const Lanes offset = Load(bias + i);
    for (int64_t file = 0; file < kOutputSide; ++file) {
      winograd::OutputLine line(lines + file * kTileColumns + i, kOutputSide * kTileColumns);
      const int64_t place = file * row + i;
      line.y0 += offset;
      line.y1 += offset;
      line.y2 += offset;
      line.y3 += offset;
      if constexpr (kSkip) {
        line.y0 += Load(skip + place);
        line.y1 += Load(skip + place + rank);
        line.y2 += Load(skip + place + 2 * rank);
        line.y3 += Load(skip + place + 3 * rank);
      }
      line.y0 = activate(line.y0);
      line.y1 = activate(line.y1);
      line.y2 = activate(line.y2);
      line.y3 = activate(line.y3);
      line.Write(to + place, rank);
    }
  }
}

}  // namespace

void Conv::WriteOutputs(const Panel& panel, int64_t tiles, float* y, const ConvFinish& finish,
                        const ConvRoom& room) const {
  const int64_t row = PaddedChannels(outputs_);
  const float* bias = bias_.data() + panel.first;
  WithActivation(finish.activation, [&](const auto& activate) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t square = tile % 4 / 2 * kOutputSide * kBoardSide + tile % 2 * kOutputSide;
      const int64_t place = (tile / 4 * kSquares + square) * row + panel.first;
      const float* lines = room.lines.data() + tile * kLineStep;
      if (finish.skip != nullptr) {
        WriteTile<true>(lines, bias, finish.skip + place, y + place, row, panel.width, activate);
      } else {
        WriteTile<false>(lines, bias, nullptr, y + place, row, panel.width, activate);
      }
    }
  });
}

}  // namespace kibitz::nn
