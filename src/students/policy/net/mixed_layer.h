// One layer of the policy's CNN in mixed precision, z = conv(norm(x)): what its passes over pieces
// of boards (nn/conv/piece_passes.h) read, and the sums that they add gradients to.
//
// Letters: I and O channels, Ip and Op padded (nn::PaddedPiece), S shares.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "nn/conv/bf16_conv.h"
#include "nn/conv/piece_passes.h"
#include "students/policy/net/board_layer.h"

namespace kibitz::policy {

// The parameters for one pass, rounded and packed.
class MixedLayer {
 public:
  MixedLayer(const LayerTensors& tensors, nn::ConvPass pass);

  const nn::PieceNorm& norm() const { return norm_; }
  const nn::Bf16Weights& weights() const { return weights_; }
  const float* bias() const { return bias_.data_ptr<float>(); }  // (Op)

 private:
  nn::PieceNorm norm_;
  torch::Tensor norm_weight_;  // (64, Ip)
  torch::Tensor norm_bias_;    // (64, Ip)
  torch::Tensor bias_;         // (Op)
  nn::Bf16Weights weights_;
};

// Gradients of the parameters, summed over some pieces; memory of MixedGradients.
struct MixedShare {
  float* taps = nullptr;         // (9, Ip, Op)
  float* bias = nullptr;         // (Op)
  float* norm_weight = nullptr;  // (64, Ip), or nothing without a norm.
  float* norm_bias = nullptr;    // The same.
};

// Shares that threads fill, each one at a time, added up in order: results do not depend on the
// number of threads.
class MixedGradients {
 public:
  MixedGradients(const LayerTensors& tensors, int64_t shares);

  MixedShare Share(int64_t share) const;
  // Added up, as the modules hold them; undefined where these are.
  LayerTensors Total(const LayerTensors& tensors) const;

 private:
  torch::Tensor taps_;         // (S, 9, Ip, Op)
  torch::Tensor bias_;         // (S, Op)
  torch::Tensor norm_weight_;  // (S, 64, Ip)
  torch::Tensor norm_bias_;    // The same.
};

}  // namespace kibitz::policy
