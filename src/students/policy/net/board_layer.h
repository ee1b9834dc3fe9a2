// One layer of the policy's CNN over a few boards, forward and backward: y = gelu(conv(norm(x))).
// 3x3 kernels with Winograd's transform (nn/conv/winograd.h), in float32 on the CPU. A thread's
// boards stay in its cache, and so do weights, or sums of their gradients, while boards pass.
//
//   const BoardLayer layer(tensors);
//   layer.Forward(boards, x, {.sums = sums, .y = y, .slope = slope}, room);
//   layer.Backward(boards, {.x = x, .sums = sums, .slope = slope, .dy = dy}, dx, share, room);
//
// Letters: P boards of a piece, I and O channels, Ip and Op the same padded to whole vectors
// (PaddedBoard), T = 4 P tiles. Boards are (P, 64, Ip) or (P, 64, Op); behind the channels they
// hold 0.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "nn/conv/norm_rows.h"
#include "nn/kernels/lanes.h"
#include "students/policy/net/board_shares.h"

namespace kibitz::policy {

constexpr int64_t PaddedBoard(int64_t channels) {
  return (channels + nn::kLanes - 1) / nn::kLanes * nn::kLanes;
}
// (B, 64, C) to (B, 64, padded).
torch::Tensor PadBoards(const torch::Tensor& x);

// Parameters as the modules hold them.
struct LayerTensors {
  torch::Tensor norm_weight = {};  // (I, 8, 8); undefined: no norm.
  torch::Tensor norm_bias = {};    // The same; undefined: an RMSNorm.
  torch::Tensor weight = {};       // (O, I, 3, 3)
  torch::Tensor bias = {};         // (O)
  double epsilon = 0;              // Of the norm.
};

// Norms as boards with channels innermost meet them: (64, Ip).
torch::Tensor BySquare(const torch::Tensor& norm_weight);
// Back to (I * 64) numbers, channel by channel.
torch::Tensor ByChannel(const torch::Tensor& by_square, int64_t channels);

// Gradients of the parameters, summed over some boards; memory of LayerGradients.
struct LayerShare {
  float* taps = nullptr;         // (36, I, Op)
  float* bias = nullptr;         // (Op)
  float* norm_weight = nullptr;  // (64, Ip), or nothing without a norm.
  float* norm_bias = nullptr;    // The same.
  bool empty = true;             // Nothing was added yet; taps hold anything.
};

// Shares that threads fill, each one at a time, added up in order: results do not depend on the
// number of threads. Every share must get boards.
class LayerGradients {
 public:
  LayerGradients(const LayerTensors& tensors, int64_t shares);

  LayerShare Share(int64_t share);
  // Added up, as the modules hold them; undefined where these are.
  LayerTensors Total(const LayerTensors& tensors) const;

 private:
  torch::Tensor taps_;         // (shares, 36, I, Op)
  torch::Tensor bias_;         // (shares, Op)
  torch::Tensor norm_weight_;  // (shares, 64, Ip)
  torch::Tensor norm_bias_;    // The same.
};

// What a thread needs for some boards.
struct LayerRoom {
  LayerRoom(int64_t boards, int64_t inputs, int64_t outputs);

  torch::Tensor inputs;   // (36, T, Ip) and some distance between taps: of inputs.
  torch::Tensor outputs;  // (36, T, Op): of outputs.
  torch::Tensor board;    // (64, the larger of both)
  torch::Tensor dz;       // (boards, 64, Op): of Backward.
};

class BoardLayer {
 public:
  explicit BoardLayer(const LayerTensors& tensors);

  // The results of Forward.
  struct ForwardTo {
    nn::NormSums* sums = nullptr;  // Of the norm, for backward.
    const float* onto = nullptr;   // Added to y; may be nothing.
    float* y = nullptr;
    float* slope = nullptr;  // Of gelu, for backward.
  };
  void Forward(int64_t boards, const float* x, const ForwardTo& to, LayerRoom& room) const;

  // The inputs of Backward.
  struct BackwardFrom {
    const float* x = nullptr;            // As Forward got it ...
    const nn::NormSums* sums = nullptr;  // ... and left these.
    const float* slope = nullptr;
    const float* dy = nullptr;
    const float* onto = nullptr;  // Added to dx; may be nothing.

    // The same from a board on, of `in` and `out` numbers.
    BackwardFrom Later(int64_t board, int64_t in, int64_t out) const;
  };
  // dx is not computed where it is nothing, and may be dy.
  void Backward(int64_t boards, const BackwardFrom& from, float* dx, LayerShare& share,
                LayerRoom& room) const;
  // Before the first Backward that computes dx.
  void PrepareBackward();

 private:
  // Steps of a piece, whose boards are the first of what the pointers point to.
  void TransformInputs(int64_t boards, const float* x, const nn::NormSums* sums,
                       LayerRoom& room) const;
  void TransformGradients(int64_t boards, const float* dz, LayerRoom& room) const;
  void InputGradients(int64_t boards, const BackwardFrom& from, const float* dz, float* dx,
                      LayerShare& share, LayerRoom& room) const;
  void WeightGradients(int64_t boards, const BackwardFrom& from, const float* dz, LayerShare& share,
                       LayerRoom& room) const;

  int64_t inputs_;
  int64_t outputs_;
  nn::NormRows norm_;
  torch::Tensor norm_weight_;    // (64, Ip)
  torch::Tensor norm_bias_;      // (64, Ip)
  torch::Tensor taps_;           // (36, I, Op)
  torch::Tensor backward_taps_;  // (36, O, Ip)
  torch::Tensor bias_;           // (Op)
};

}  // namespace kibitz::policy
