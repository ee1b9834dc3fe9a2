#include "students/policy/net/board_layer.h"

#include <algorithm>
#include <array>

#include "nn/conv/winograd.h"
#include "nn/conv/winograd_backward.h"
#include "nn/kernels/cached_gemm.h"
#include "nn/kernels/gelu.h"

namespace kibitz::policy {
namespace {

using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::Store;
using nn::winograd::kBoardTiles;
using nn::winograd::kTaps;
using torch::Tensor;

constexpr int64_t kWindow = 9;

// Between tiles: an odd number of cache lines, for lines that are a multiple of 4096 bytes apart
// push each other out of the first cache.
constexpr int64_t TileStep(int64_t row) { return kTaps * row + 16; }
// A board's first square of a tile, counted in squares.
constexpr int64_t FirstSquare(int64_t tile) { return tile / 2 * 32 + tile % 2 * 4; }

// The transform of a window's weights as a matrix: (36, 9).
Tensor WindowToTaps() {
  Tensor matrix = torch::empty({kTaps, kWindow});
  for (int64_t i = 0; i < kWindow; ++i) {
    std::array<float, kWindow> window{};
    window[static_cast<size_t>(i)] = 1;
    const auto taps = nn::winograd::TransformWeights(window.data());
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      matrix.data_ptr<float>()[tap * kWindow + i] = taps[static_cast<size_t>(tap)];
    }
  }
  return matrix;
}

Tensor PadLast(const Tensor& x) {
  const int64_t width = x.size(-1);
  if (width % kLanes == 0) return x.contiguous();
  return torch::constant_pad_nd(x, {0, PaddedBoard(width) - width}).contiguous();
}

// (O, I, 3, 3) to (36, I, Op).
Tensor ToTaps(const Tensor& weight) {
  const Tensor windows = PadLast(weight.permute({2, 3, 1, 0}));  // (3, 3, I, Op)
  return WindowToTaps().mm(windows.view({kWindow, -1})).view({kTaps, weight.size(1), -1});
}

// The gradient of ToTaps: (36, I, Op) to (O, I, 3, 3).
Tensor FromTaps(const Tensor& taps, int64_t outputs) {
  const Tensor windows = WindowToTaps().t().mm(taps.view({kTaps, -1}));
  return windows.view({3, 3, taps.size(1), -1})
      .narrow(3, 0, outputs)
      .permute({3, 2, 0, 1})
      .contiguous();
}

}  // namespace

Tensor PadBoards(const Tensor& x) { return PadLast(x); }

Tensor BySquare(const Tensor& norm_weight) { return PadLast(norm_weight.reshape({-1, 64}).t()); }

Tensor ByChannel(const Tensor& by_square, int64_t channels) {
  return by_square.narrow(1, 0, channels).t().contiguous();
}

LayerGradients::LayerGradients(const LayerTensors& tensors, int64_t shares) {
  const int64_t inputs = tensors.weight.size(1);
  const int64_t row = PaddedBoard(tensors.weight.size(0));
  taps_ = torch::empty({shares, kTaps, inputs, row});
  bias_ = torch::zeros({shares, row});
  if (!tensors.norm_weight.defined()) return;
  norm_weight_ = torch::zeros({shares, 64, PaddedBoard(inputs)});
  norm_bias_ = torch::zeros_like(norm_weight_);
}

LayerShare LayerGradients::Share(int64_t share) {
  LayerShare result = {.taps = taps_[share].data_ptr<float>(),
                       .bias = bias_[share].data_ptr<float>()};
  if (norm_weight_.defined()) {
    result.norm_weight = norm_weight_[share].data_ptr<float>();
    result.norm_bias = norm_bias_[share].data_ptr<float>();
  }
  return result;
}

LayerTensors LayerGradients::Total(const LayerTensors& tensors) const {
  const int64_t inputs = tensors.weight.size(1);
  const int64_t outputs = tensors.weight.size(0);
  LayerTensors total;
  total.weight = FromTaps(SumOfShares(taps_), outputs);
  total.bias = SumOfShares(bias_).narrow(0, 0, outputs).contiguous();
  if (tensors.norm_weight.defined()) {
    total.norm_weight =
        ByChannel(SumOfShares(norm_weight_), inputs).view(tensors.norm_weight.sizes());
  }
  if (tensors.norm_bias.defined()) {
    total.norm_bias = ByChannel(SumOfShares(norm_bias_), inputs).view(tensors.norm_bias.sizes());
  }
  return total;
}

LayerRoom::LayerRoom(int64_t in, int64_t out)
    : inputs(torch::empty({kBoardsOfPiece * kBoardTiles, TileStep(PaddedBoard(in))})),
      outputs(torch::empty({kBoardsOfPiece * kBoardTiles, TileStep(PaddedBoard(out))})),
      board(torch::empty({64, PaddedBoard(std::max(in, out))})) {}

BoardLayer::BoardLayer(const LayerTensors& tensors)
    : inputs_(tensors.weight.size(1)),
      outputs_(tensors.weight.size(0)),
      taps_(ToTaps(tensors.weight)),
      bias_(PadLast(tensors.bias)) {
  if (!tensors.norm_weight.defined()) return;
  norm_weight_ = BySquare(tensors.norm_weight);
  norm_.weight = norm_weight_.data_ptr<float>();
  norm_.size = norm_weight_.numel();
  norm_.count = 64 * inputs_;
  norm_.epsilon = static_cast<float>(tensors.epsilon);
  if (!tensors.norm_bias.defined()) return;
  norm_bias_ = BySquare(tensors.norm_bias);
  norm_.bias = norm_bias_.data_ptr<float>();
}

void BoardLayer::PrepareBackward() {
  backward_taps_ = PadLast(taps_.narrow(2, 0, outputs_).transpose(1, 2));
}

// A board, normalised, to the taps of its four tiles.
void BoardLayer::TransformInputs(int64_t board, const float* x, const nn::NormSums& sums,
                                 LayerRoom& room) const {
  const int64_t row = PaddedBoard(inputs_);
  const float* from = x;
  if (norm_.weight != nullptr) {
    nn::Normalise(norm_, sums, x, room.board.data_ptr<float>());
    from = room.board.data_ptr<float>();
  }
  float* taps = room.inputs.data_ptr<float>() + board * kBoardTiles * TileStep(row);
  for (int64_t tile = 0; tile < kBoardTiles; ++tile, taps += TileStep(row)) {
    nn::winograd::TransformTile(from, tile, row, taps);
  }
}

void BoardLayer::Forward(int64_t boards, const float* x, nn::NormSums* sums, float* z,
                         LayerRoom& room) const {
  const int64_t in = PaddedBoard(inputs_);
  const int64_t out = PaddedBoard(outputs_);
  const int64_t tiles = boards * kBoardTiles;
  for (int64_t board = 0; board < boards; ++board) {
    const float* from = x + board * 64 * in;
    if (norm_.weight != nullptr) sums[board] = nn::SumsOf(norm_, from);
    TransformInputs(board, from, sums[board], room);
  }
  const float* products = room.outputs.data_ptr<float>();
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    nn::CachedGemm({.a = {room.inputs.data_ptr<float>() + tap * in, TileStep(in)},
                    .b = taps_.data_ptr<float>() + tap * inputs_ * out,
                    .b_row = out,
                    .c = room.outputs.data_ptr<float>() + tap * out,
                    .c_row = TileStep(out),
                    .rows = tiles,
                    .depth = inputs_,
                    .columns = out});
  }
  for (int64_t tile = 0; tile < tiles; ++tile, products += TileStep(out)) {
    float* to = z + (tile / kBoardTiles * 64 + FirstSquare(tile % kBoardTiles)) * out;
    for (int64_t c = 0; c < out; c += kLanes) {
      nn::winograd::TransformOutput(products + c, out, Load(bias_.data_ptr<float>() + c), to + c,
                                    out);
    }
  }
}

namespace {

// dz = dy * gelu'(z) of one board, and the sum over its squares added to the bias's gradient.
void GeluBackward(const float* z, const float* dy, int64_t row, float* dz, float* bias) {
  for (int64_t c = 0; c < row; c += kLanes) {
    Lanes sum = Load(bias + c);
    for (int64_t i = c; i < 64 * row; i += row) {
      const Lanes slope = Load(dy + i) * nn::GeluSlope(Load(z + i));
      Store(dz + i, slope);
      sum += slope;
    }
    Store(bias + c, sum);
  }
}

}  // namespace

// The gradient of a board's outputs, to that of the taps of its four tiles.
void BoardLayer::TransformGradients(int64_t board, const BackwardFrom& from, float* bias,
                                    LayerRoom& room) const {
  const int64_t row = PaddedBoard(outputs_);
  float* const dz = room.board.data_ptr<float>();
  GeluBackward(from.z + board * 64 * row, from.dy + board * 64 * row, row, dz, bias);
  float* taps = room.outputs.data_ptr<float>() + board * kBoardTiles * TileStep(row);
  for (int64_t tile = 0; tile < kBoardTiles; ++tile, taps += TileStep(row)) {
    for (int64_t c = 0; c < row; c += kLanes) {
      nn::winograd::TransformOutputBackward(dz + FirstSquare(tile) * row + c, row, taps + c, row);
    }
  }
}

// For each tap: the gradient of the weights, then that of the inputs, which replaces them.
void BoardLayer::MultiplyBackward(int64_t tiles, bool wants_dx, const LayerShare& share,
                                  LayerRoom& room) const {
  const int64_t in = PaddedBoard(inputs_);
  const int64_t out = PaddedBoard(outputs_);
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    float* inputs = room.inputs.data_ptr<float>() + tap * in;
    const float* gradients = room.outputs.data_ptr<float>() + tap * out;
    nn::CachedGemm({.a = {inputs, 1, TileStep(in)},
                    .b = gradients,
                    .b_row = TileStep(out),
                    .c = share.taps + tap * inputs_ * out,
                    .c_row = out,
                    .rows = inputs_,
                    .depth = tiles,
                    .columns = out,
                    .add = !share.empty});
    if (!wants_dx) continue;
    nn::CachedGemm({.a = {gradients, TileStep(out)},
                    .b = backward_taps_.data_ptr<float>() + tap * outputs_ * in,
                    .b_row = in,
                    .c = inputs,
                    .c_row = TileStep(in),
                    .rows = tiles,
                    .depth = outputs_,
                    .columns = in});
  }
}

void BoardLayer::Backward(int64_t boards, const BackwardFrom& from, float* dx, LayerShare& share,
                          LayerRoom& room) const {
  const int64_t row = PaddedBoard(inputs_);
  const int64_t size = 64 * row;
  for (int64_t board = 0; board < boards; ++board) {
    TransformGradients(board, from, share.bias, room);
    TransformInputs(board, from.x + board * size, from.sums[board], room);
  }
  MultiplyBackward(boards * kBoardTiles, dx != nullptr, share, room);
  share.empty = false;
  if (dx == nullptr) return;
  float* const dnormed = room.board.data_ptr<float>();
  const float* taps = room.inputs.data_ptr<float>();
  for (int64_t board = 0; board < boards; ++board, taps += kBoardTiles * TileStep(row)) {
    for (int64_t c = 0; c < row; c += kLanes) {
      nn::winograd::TransformInputBackward(taps + c, TileStep(row), row, dnormed + c, row);
    }
    nn::NormaliseBackward(norm_, from.sums[board],
                          {.x = from.x + board * size,
                           .dy = dnormed,
                           .extra = from.onto == nullptr ? nullptr : from.onto + board * size,
                           .dx = dx + board * size,
                           .dweight = share.norm_weight,
                           .dbias = share.norm_bias});
  }
}

}  // namespace kibitz::policy
