// The weights of an lc0 network as nn's residual network takes them, batch norm folded in.
//
//   const Lc0Weights weights = Lc0WeightsOf(io::ReadModel("maia-1500.pb.gz"));
//   nn::ResidualNet net(weights.residual);
//
// Residual networks with the 112 classical input planes run, with or without
// squeeze-and-excitation. Others (attention bodies and heads, other inputs) are refused with an
// Error that says what they are.
#pragma once

#include <cstdint>
#include <string>

#include "io/weights/model_file.h"
#include "nn/conv/residual_net.h"

namespace kibitz::oracles {

enum class Lc0ValueHead : uint8_t { kExpected, kWdl };

struct Lc0Weights {
  nn::ResidualWeights residual;
  Lc0ValueHead value_head = Lc0ValueHead::kExpected;  // One output (tanh) or three (softmax).
};

// Throws Error.
Lc0Weights Lc0WeightsOf(const io::ModelFile& file);

// "6 blocks of 64 filters with squeeze-and-excitation, convolutional policy, WDL".
std::string DescriptionOf(const Lc0Weights& weights);

}  // namespace kibitz::oracles
