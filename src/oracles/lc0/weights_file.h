// lc0's weight files (.pb.gz, .pb): what the network is and its weights, batch norm folded in.
//
//   const Lc0File file = ReadLc0File("maia-1500.pb.gz");
//   nn::ResidualNet net(file.weights, nn::Precision::kF32);
//
// Read are residual networks, with or without squeeze-and-excitation, with the 112 classical input
// planes. Others (attention bodies and heads, other inputs) are refused with what they are.
#pragma once

#include <string>
#include <string_view>

#include "nn/conv/residual_net.h"

namespace kibitz::oracles {

enum class Lc0ValueHead : uint8_t { kExpected, kWdl };

struct Lc0File {
  nn::ResidualWeights weights;
  Lc0ValueHead value_head = Lc0ValueHead::kExpected;  // One output (tanh) or three (softmax).
  std::string license = {};
};

// Whether the file, unpacked, starts as lc0's do. Throws Error when it cannot be read.
bool IsLc0File(const std::string& path);

// Throws Error.
Lc0File ReadLc0File(const std::string& path);
// The same from the bytes of an unpacked file; `path` stands in messages.
Lc0File ParseLc0File(std::string_view bytes, const std::string& path);

// "6 blocks of 64 filters with squeeze-and-excitation, convolutional policy, WDL".
std::string DescriptionOf(const Lc0File& file);

}  // namespace kibitz::oracles
