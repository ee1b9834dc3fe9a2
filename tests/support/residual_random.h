// Residual networks with random weights, and random positions for them: for tests and benches,
// where any network of the right shape will do.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/conv/residual_net.h"

namespace kibitz::nn {

// The defaults are the shape of the Maia networks.
struct ResidualShape {
  int64_t planes = 112;
  int64_t channels = 64;
  int64_t blocks = 6;
  int64_t squeezed = 8;  // Outputs of a squeeze's first layer; 0: no squeeze.
  int64_t policy_channels = 64;
  int64_t policy_outputs = 80;       // Planes, or numbers of a classical head.
  bool convolutional_policy = true;  // Else classical: 1x1, then dense.
  int64_t value_channels = 32;
  int64_t value_hidden = 128;
  int64_t value_outputs = 3;
  Activation activation = Activation::kRelu;
};

// Numbers keep their size from layer to layer.
ResidualWeights RandomResidualWeights(const ResidualShape& shape, uint64_t seed);

// A position of 13 planes for each of 8 boards that differ by a move each, as lc0's, then planes
// that are empty or full.
struct RandomPlanes {
  std::vector<uint64_t> squares;
  std::vector<float> values;

  RandomPlanes(int64_t planes, uint64_t seed);
  PlaneInput input() const { return {squares, values}; }
};

}  // namespace kibitz::nn
