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

// Between the taps of a piece's tiles.
constexpr int64_t PieceStep(int64_t row) {
  return nn::winograd::TapStep(kBoardsOfPiece * kBoardTiles, row);
}
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

LayerRoom::LayerRoom(int64_t boards, int64_t in, int64_t out)
    : inputs(torch::empty({kTaps, PieceStep(PaddedBoard(in))})),
      outputs(torch::empty({kTaps, PieceStep(PaddedBoard(out))})),
      board(torch::empty({64, PaddedBoard(std::max(in, out))})),
      dz(torch::empty({boards, 64, PaddedBoard(out)})) {}

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

// Boards, normalised, to the taps of their tiles.
void BoardLayer::TransformInputs(int64_t boards, const float* x, const nn::NormSums* sums,
                                 LayerRoom& room) const {
  const int64_t row = PaddedBoard(inputs_);
  float* taps = room.inputs.data_ptr<float>();
  for (int64_t board = 0; board < boards; ++board, x += 64 * row) {
    const float* from = x;
    if (norm_.weight != nullptr) {
      nn::Normalise(norm_, sums[board], x, room.board.data_ptr<float>());
      from = room.board.data_ptr<float>();
    }
    for (int64_t tile = 0; tile < kBoardTiles; ++tile, taps += row) {
      nn::winograd::TransformTile(from, tile, row, taps, PieceStep(row));
    }
  }
}

namespace {

// slope = gelu'(z), y = gelu(z) or gelu(z) + onto; slope holds z before.
void ApplyGeluAndSlope(int64_t size, const float* onto, float* y, float* slope) {
  for (int64_t i = 0; i < size; i += kLanes) {
    const nn::GeluAndSlope gelu(Load(slope + i));
    Store(y + i, onto == nullptr ? gelu.value : Load(onto + i) + gelu.value);
    Store(slope + i, gelu.slope);
  }
}

}  // namespace

void BoardLayer::Forward(int64_t boards, const float* x, const ForwardTo& to,
                         LayerRoom& room) const {
  const int64_t in = PaddedBoard(inputs_);
  const int64_t out = PaddedBoard(outputs_);
  if (norm_.weight != nullptr) {
    for (int64_t board = 0; board < boards; ++board) {
      to.sums[board] = nn::SumsOf(norm_, x + board * 64 * in);
    }
  }
  TransformInputs(boards, x, to.sums, room);
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    nn::CachedGemm({.a = {room.inputs.data_ptr<float>() + tap * PieceStep(in), in},
                    .b = taps_.data_ptr<float>() + tap * inputs_ * out,
                    .b_row = out,
                    .c = room.outputs.data_ptr<float>() + tap * PieceStep(out),
                    .c_row = out,
                    .rows = boards * kBoardTiles,
                    .depth = inputs_,
                    .columns = out});
  }
  for (int64_t board = 0; board < boards; ++board) {
    const int64_t at = board * 64 * out;
    for (int64_t tile = 0; tile < kBoardTiles; ++tile) {
      const float* products = room.outputs.data_ptr<float>() + (board * kBoardTiles + tile) * out;
      float* const z = to.slope + at + FirstSquare(tile) * out;
      for (int64_t c = 0; c < out; c += kLanes) {
        nn::winograd::TransformOutput(products + c, PieceStep(out),
                                      Load(bias_.data_ptr<float>() + c), z + c, out);
      }
    }
    ApplyGeluAndSlope(64 * out, to.onto == nullptr ? nullptr : to.onto + at, to.y + at,
                      to.slope + at);
  }
}

namespace {

// dz = dy * slope of one board, and the sum over its squares added to the bias's gradient.
void GeluBackward(const float* slope, const float* dy, int64_t row, float* dz, float* bias) {
  for (int64_t c = 0; c < row; c += kLanes) {
    Lanes sum = Load(bias + c);
    for (int64_t i = c; i < 64 * row; i += row) {
      const Lanes product = Load(dy + i) * Load(slope + i);
      Store(dz + i, product);
      sum += product;
    }
    Store(bias + c, sum);
  }
}

}  // namespace

// The gradients of boards' outputs, to those of the taps of their tiles.
void BoardLayer::TransformGradients(int64_t boards, const float* dz, LayerRoom& room) const {
  const int64_t row = PaddedBoard(outputs_);
  float* taps = room.outputs.data_ptr<float>();
  for (int64_t tile = 0; tile < boards * kBoardTiles; ++tile, taps += row) {
    const int64_t square = tile / kBoardTiles * 64 + FirstSquare(tile % kBoardTiles);
    for (int64_t c = 0; c < row; c += kLanes) {
      nn::winograd::TransformOutputBackward(dz + square * row + c, row, taps + c, PieceStep(row));
    }
  }
}

// Leaves the taps of dz in the room, those of dx too.
void BoardLayer::InputGradients(int64_t boards, const BackwardFrom& from, const float* dz,
                                float* dx, LayerShare& share, LayerRoom& room) const {
  const int64_t in = PaddedBoard(inputs_);
  const int64_t out = PaddedBoard(outputs_);
  TransformGradients(boards, dz, room);
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    nn::CachedGemm({.a = {room.outputs.data_ptr<float>() + tap * PieceStep(out), out},
                    .b = backward_taps_.data_ptr<float>() + tap * outputs_ * in,
                    .b_row = in,
                    .c = room.inputs.data_ptr<float>() + tap * PieceStep(in),
                    .c_row = in,
                    .rows = boards * kBoardTiles,
                    .depth = outputs_,
                    .columns = in});
  }
  float* const dnormed = room.board.data_ptr<float>();
  for (int64_t board = 0; board < boards; ++board) {
    const float* taps = room.inputs.data_ptr<float>() + board * kBoardTiles * in;
    for (int64_t c = 0; c < in; c += kLanes) {
      nn::winograd::TransformInputBackward(taps + c, in, PieceStep(in), dnormed + c, in);
    }
    const int64_t at = board * 64 * in;
    nn::NormaliseBackward(norm_, from.sums[board],
                          {.x = from.x + at,
                           .dy = dnormed,
                           .extra = from.onto == nullptr ? nullptr : from.onto + at,
                           .dx = dx + at,
                           .dweight = share.norm_weight,
                           .dbias = share.norm_bias});
  }
}

void BoardLayer::WeightGradients(int64_t boards, const BackwardFrom& from, const float* dz,
                                 LayerShare& share, LayerRoom& room) const {
  const int64_t in = PaddedBoard(inputs_);
  const int64_t out = PaddedBoard(outputs_);
  TransformGradients(boards, dz, room);
  TransformInputs(boards, from.x, from.sums, room);
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    nn::CachedGemm({.a = {room.inputs.data_ptr<float>() + tap * PieceStep(in), 1, in},
                    .b = room.outputs.data_ptr<float>() + tap * PieceStep(out),
                    .b_row = out,
                    .c = share.taps + tap * inputs_ * out,
                    .c_row = out,
                    .rows = inputs_,
                    .depth = boards * kBoardTiles,
                    .columns = out,
                    .add = !share.empty});
  }
  share.empty = false;
}

BoardLayer::BackwardFrom BoardLayer::BackwardFrom::Later(int64_t board, int64_t in,
                                                         int64_t out) const {
  return {.x = x + board * in,
          .sums = sums + board,
          .slope = slope + board * out,
          .dy = dy + board * out,
          .onto = onto == nullptr ? nullptr : onto + board * in};
}

// The weights' gradients of all pieces first: dx may be dy. One after the other, because the second
// cache has room for the taps of weights or for the sums of their gradients, not for both.
void BoardLayer::Backward(int64_t boards, const BackwardFrom& from, float* dx, LayerShare& share,
                          LayerRoom& room) const {
  const int64_t in = 64 * PaddedBoard(inputs_);
  const int64_t out = 64 * PaddedBoard(outputs_);
  float* const dz = room.dz.data_ptr<float>();
  for (int64_t board = 0; board < boards; ++board) {
    GeluBackward(from.slope + board * out, from.dy + board * out, out / 64, dz + board * out,
                 share.bias);
  }
  for (int64_t first = 0; first < boards; first += kBoardsOfPiece) {
    WeightGradients(std::min(kBoardsOfPiece, boards - first), from.Later(first, in, out),
                    dz + first * out, share, room);
  }
  if (dx == nullptr) return;
  for (int64_t first = 0; first < boards; first += kBoardsOfPiece) {
    InputGradients(std::min(kBoardsOfPiece, boards - first), from.Later(first, in, out),
                   dz + first * out, dx + first * in, share, room);
  }
}

}  // namespace kibitz::policy
