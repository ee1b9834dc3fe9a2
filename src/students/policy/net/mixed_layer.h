// One layer of the policy's CNN in mixed precision, z = conv(norm(x)): what its passes over pieces
// of boards (nn/conv/piece_passes.h) read, and the sums that they add gradients to.
//
// Letters: I and O channels, Ip and Op padded (nn::PaddedPiece), S shares.
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <vector>

#include "nn/conv/bf16_conv.h"
#include "nn/conv/piece_passes.h"
#include "students/policy/net/board_layer.h"
#include "students/policy/net/mixed_pieces.h"

namespace kibitz::policy {

// Gradients of the parameters, summed over some pieces; memory of MixedGradients.
struct MixedShare {
  float* taps = nullptr;         // (taps, Ip, Op)
  float* bias = nullptr;         // (Op), or nothing.
  float* norm_weight = nullptr;  // (64, Ip), or nothing without a norm.
  float* norm_bias = nullptr;    // The same.
  bool empty = true;             // Nothing was added yet; taps hold anything.
};

// The parameters for one pass, rounded and packed. Weights of two dimensions, (O, I), are a product
// with each square; the bias may be undefined.
class MixedLayer {
 public:
  MixedLayer(const LayerTensors& tensors, nn::ConvPass pass);

  const nn::PieceNorm& norm() const { return norm_; }
  const nn::Bf16Weights& weights() const { return weights_; }
  const float* bias() const { return bias_.data_ptr<float>(); }  // (Op)

  // From the gradient of outputs in the room to that of the norm's outputs there, of a piece of
  // inputs x; adds to the gradients of weights and norm. Returns the norm's sums. `soon`: pieces
  // that are read next, or nothing.
  template <typename T>
  nn::NormBackwardSums Backward(const nn::PieceSums& sums, const T* x, MixedShare& share,
                                const MixedRoom& room,
                                std::array<const nn::Bf16*, 2> soon = {}) const;

 private:
  nn::PieceNorm norm_;
  torch::Tensor norm_weight_;  // (64, Ip)
  torch::Tensor norm_bias_;    // (64, Ip)
  torch::Tensor bias_;         // (Op)
  nn::Bf16Weights weights_;
};

// Each layer packed for a pass, by all threads.
std::vector<MixedLayer> PackLayers(const std::vector<LayerTensors>& tensors, nn::ConvPass pass);

// Shares that threads fill, each one at a time, added up in order: results do not depend on the
// number of threads. Every share must get pieces.
class MixedGradients {
 public:
  MixedGradients(const LayerTensors& tensors, int64_t shares);

  MixedShare Share(int64_t share) const;
  // Added up, as the modules hold them; undefined where these are.
  LayerTensors Total(const LayerTensors& tensors) const;

 private:
  torch::Tensor taps_;         // (S, taps, Ip, Op)
  torch::Tensor bias_;         // (S, Op)
  torch::Tensor norm_weight_;  // (S, 64, Ip)
  torch::Tensor norm_bias_;    // The same.
};

}  // namespace kibitz::policy
