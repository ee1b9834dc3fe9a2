#include "nn/conv.h"

#include <algorithm>

#include "base/check.h"
#include "nn/small_product.h"
#include "nn/winograd.h"

namespace kibitz::nn {
namespace {

using winograd::Edge;
using winograd::kBoardTiles;
using winograd::kTaps;

// Between the taps of a tile: not a multiple of 4096 bytes, for such lines push each other out of
// the first cache.
constexpr int64_t TapStep(int64_t tiles, int64_t row) { return tiles * row + kTileColumns; }

// All tiles of x to their taps, (36, T, row) with taps TapStep apart.
void TransformInputs(int64_t positions, const float* x, int64_t row, float* taps) {
  const int64_t step = TapStep(positions * kBoardTiles, row);
  for (int64_t p = 0; p < positions; ++p) {
    const float* board = x + p * kSquares * row;
    float* to = taps + p * kBoardTiles * row;
    for (int64_t c = 0; c < row; c += kLanes) {
      using enum Edge;
      winograd::TransformInput<kFirst, kFirst>(board + c, row, to + c, step);
      winograd::TransformInput<kFirst, kLast>(board + c, row, to + row + c, step);
      winograd::TransformInput<kLast, kFirst>(board + c, row, to + 2 * row + c, step);
      winograd::TransformInput<kLast, kLast>(board + c, row, to + 3 * row + c, step);
    }
  }
}

}  // namespace

Conv::Conv(const ConvWeights& weights) : inputs_(weights.inputs), outputs_(weights.outputs) {
  CHECK(weights.size == 1 || weights.size == 3);
  CHECK(static_cast<int64_t>(weights.weight.size()) ==
        inputs_ * outputs_ * weights.size * weights.size);
  CHECK(static_cast<int64_t>(weights.bias.size()) == outputs_);
  if (weights.size == 1) {
    pointwise_ = Dense({inputs_, outputs_, weights.weight, weights.bias});
  } else {
    PackTaps(weights);
  }
}

void Conv::PackTaps(const ConvWeights& weights) {
  taps_ = AlignedArray<float>::InLargePages(PaddedChannels(outputs_) * kTaps * inputs_);
  bias_ = AlignedArray<float>(PaddedChannels(outputs_));
  std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
  for (int64_t n = 0; n < outputs_; ++n) {
    float* to = taps_.data() + n / kTileColumns * kTaps * inputs_ * kTileColumns + n % kTileColumns;
    for (int64_t k = 0; k < inputs_; ++k) {
      const auto taps = winograd::TransformWeights(weights.weight.data() + (n * inputs_ + k) * 9);
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        to[(tap * inputs_ + k) * kTileColumns] = taps[static_cast<size_t>(tap)];
      }
    }
  }
}

size_t Conv::memory_bytes() const {
  return pointwise_.memory_bytes() +
         static_cast<size_t>(taps_.size() + bias_.size()) * sizeof(float);
}

double Conv::ProductFlops() const {
  const int64_t products = taps_.size() > 0 ? kTaps * kBoardTiles : kSquares;
  return 2.0 * static_cast<double>(products * inputs_ * outputs_);
}

void Conv::Run(int64_t positions, const float* x, float* y, const ConvFinish& finish,
               ConvRoom& room) const {
  const int64_t row = PaddedChannels(inputs_);
  if (taps_.size() == 0) {
    CHECK(finish.skip == nullptr);
    return pointwise_.Run(positions * kSquares, x, row, y, PaddedChannels(outputs_),
                          finish.activation);
  }
  const int64_t tiles = positions * kBoardTiles;
  room.taps.Reserve(kTaps * TapStep(tiles, row));
  room.products.Reserve(kTaps * TapStep(tiles, kTileColumns));
  TransformInputs(positions, x, row, room.taps.data());
  for (int64_t panel = 0; panel * kTileColumns < outputs_; ++panel) {
    MultiplyTaps(panel, tiles, TapStep(tiles, row), room);
    WriteOutputs(panel, positions, y, finish, room);
  }
}

// For each tap a product of (T, C) and (C, kTileColumns).
void Conv::MultiplyTaps(int64_t panel, int64_t tiles, int64_t tap_step, ConvRoom& room) const {
  const int64_t row = PaddedChannels(inputs_);
  const int64_t size = inputs_ * kTileColumns;
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    const float* a = room.taps.data() + tap * tap_step;
    const float* b = taps_.data() + (panel * kTaps + tap) * size;
    float* c = room.products.data() + tap * TapStep(tiles, kTileColumns);
    for (int64_t tile = 0; tile < tiles; tile += kTileRows) {
      FetchAhead(b + size, size * 4, tiles, tile, kTileRows);
      MultiplyTile(std::min(kTileRows, tiles - tile), {.data = a + tile * row, .row = row}, b,
                   kTileColumns, inputs_, c + tile * kTileColumns, kTileColumns, false);
    }
  }
}

namespace {

// Adds what ConvFinish asks for and writes one tile's outputs. `at` points to its first square.
template <typename Activate>
void WriteTile(const float* products, int64_t step, const float* bias, const float* skip, float* at,
               int64_t row, const Activate& activate) {
  for (int64_t i = 0; i < kTileColumns; i += kLanes) {
    const Lanes offset = Load(bias + i);
    winograd::TransformOutput(products + i, step, [&](int64_t rank, int64_t file, Lanes value) {
      const int64_t place = (rank * winograd::kBoardSide + file) * row + i;
      value += offset;
      if (skip != nullptr) value += Load(skip + place);
      Store(at + place, activate(value));
    });
  }
}

}  // namespace

void Conv::WriteOutputs(int64_t panel, int64_t positions, float* y, const ConvFinish& finish,
                        const ConvRoom& room) const {
  const int64_t row = PaddedChannels(outputs_);
  const int64_t step = TapStep(positions * kBoardTiles, kTileColumns);
  const float* bias = bias_.data() + panel * kTileColumns;
  for (int64_t tile = 0; tile < positions * kBoardTiles; ++tile) {
    const int64_t square = tile % 4 / 2 * 4 * winograd::kBoardSide + tile % 2 * 4;
    const int64_t place = (tile / 4 * kSquares + square) * row + panel * kTileColumns;
    const float* products = room.products.data() + tile * kTileColumns;
    const float* skip = finish.skip != nullptr ? finish.skip + place : nullptr;
    if (!finish.activation) {
      WriteTile(products, step, bias, skip, y + place, row, [](Lanes x) { return x; });
    } else if (*finish.activation == Activation::kRelu) {
      WriteTile(products, step, bias, skip, y + place, row, Relu);
    } else {
      WriteTile(products, step, bias, skip, y + place, row, Mish);
    }
  }
}

}  // namespace kibitz::nn
