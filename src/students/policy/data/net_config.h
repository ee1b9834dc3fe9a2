// The sizes of a policy network, as config.json beside its weights and the config files' `model`
// section name them.
#pragma once

#include <cstdint>

#include "base/options.h"
#include "io/weights/model_file.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {

enum class NetClass { kMlp, kCnn };
enum class NormKind {
  kLayerNorm,  // eps 1e-5, weight and bias.
  kRmsNorm     // eps 2^-23, weight only.
};

enum class HeadKind {
  kFlat,   // One linear layer from the whole board to the moves.
  kPlanes  // A move reads its two squares (move_planes.h).
};

struct NetConfig {
  NetClass cls = NetClass::kCnn;
  int num_moves = 1968;
  int num_layers = 6;        // Residual blocks, or hidden layers of an MLP.
  int hidden_channels = 64;  // Of a CNN.
  int kernel_size = 3;       // Of a CNN; odd.
  NormKind norm = NormKind::kLayerNorm;
  HeadKind head = HeadKind::kFlat;  // Of a CNN.
  bool flip_board = false;          // Of a CNN: sees the board from the side to move.
  bool attack_planes = false;       // Of a CNN that flips: sees what the pieces attack.
  int hidden_size = 512;            // Of an MLP.

  bool IsCnn() const { return cls == NetClass::kCnn; }
  bool HasPlanes() const { return IsCnn() && head == HeadKind::kPlanes; }
  InputForm form() const {
    return {.flat = !IsCnn(), .flip = flip_board, .attacks = attack_planes};
  }
};
Fields FieldsOf(NetConfig& config);

// Throws Error::Usage when the sizes make no network.
void CheckConfig(const NetConfig& config);
// Numbers of the network.
uint64_t CountParameters(const NetConfig& config);

// The sizes of a file's network: those that its config has, the others by the shapes of its
// weights. Throws Error.
NetConfig ConfigOf(const io::ModelFile& file);

}  // namespace kibitz::policy
