// A residual network over the 64 squares of a board, as lc0's are: a tower of 3x3 convolutions with
// or without squeeze-and-excitation, a policy and a value head. Runs many positions at once.
//
//   ResidualNet net(weights);
//   net.Run(team, positions, policy.data(), value.data());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nn/conv/conv.h"
#include "nn/conv/plane_conv.h"
#include "nn/kernels/activation.h"
#include "nn/kernels/cached_linear.h"
#include "nn/kernels/team.h"

namespace kibitz::nn {

// Squeeze-and-excitation. The mean of each channel over the squares goes through `reduce`, the
// network's activation and `expand`, which has two outputs for each channel: x becomes
// sigmoid(first) * x + second.
struct SqueezeWeights {
  DenseWeights reduce;
  DenseWeights expand;  // `first` of all channels, then `second`.
};

// activation(x + squeeze(second(activation(first(x)))))
struct ResidualBlockWeights {
  ConvWeights first;
  ConvWeights second;
  std::optional<SqueezeWeights> squeeze;
};

// Exactly one of policy_planes and policy_dense is set.
struct ResidualWeights {
  ConvWeights input;
  std::vector<ResidualBlockWeights> blocks;
  Activation activation = Activation::kRelu;
  ConvWeights policy;                        // 3x3 or 1x1, with activation.
  std::optional<ConvWeights> policy_planes;  // Convolutional head: logits without activation.
  std::optional<DenseWeights> policy_dense;  // Classical head: reads `policy`, channel by channel.
  ConvWeights value;                         // 1x1, with activation.
  DenseWeights value_hidden;                 // Reads `value`, channel by channel; with activation.
  DenseWeights value_out;                    // Without activation, softmax or tanh.
};

class ResidualNet {
 public:
  // Throws Error where sizes do not match.
  explicit ResidualNet(const ResidualWeights& weights);
  ~ResidualNet();
  ResidualNet(ResidualNet&&) noexcept;
  ResidualNet& operator=(ResidualNet&&) noexcept;

  int64_t planes() const;
  // Floats a position: [square][plane] for a convolutional head, else the dense layer's outputs.
  int64_t policy_size() const;
  int64_t value_size() const;
  size_t memory_bytes() const;
  // Floating-point operations of the large products for a position, for benches.
  double ProductFlops() const;

  // policy: (positions, policy_size), value: (positions, value_size). A position's
  // results do not depend on the number of threads or on the other positions. One call at a time.
  void Run(Team& team, std::span<const PlaneInput> positions, float* policy, float* value);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kibitz::nn
