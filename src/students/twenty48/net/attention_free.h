// What the 2048 network can do at a glance, without one cell attending to another: each tile in its
// cell has a vector, their mean over the board goes through the MLPs, and the head answers. That is
// one row a board instead of sixteen, a fortieth of the work. Trained first, it is written into the
// encoder, which then computes the same and goes on learning with all it has. Letters: B boards,
// D width, F hidden width, U numbers of a tile, G numbers of a board.
//
//   Glance glance(config);
//   InitGlance(glance, seed);
//   auto logits = glance->forward(tokens);   // (B, 4, N) or (B, 4), as the encoder's.
//   WriteInto(*glance, encoder);             // encoder->forward(tokens) is the same now.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "students/twenty48/data/net_config.h"
#include "students/twenty48/net/encoder.h"

namespace kibitz::twenty48 {

struct GlanceImpl : torch::nn::Module {
  // CHECKs that CheckGlance(config) holds.
  explicit GlanceImpl(const NetConfig& config);

  torch::Tensor forward(const torch::Tensor& tokens);  // tokens: (B, 16), int64.

  const NetConfig config;
  torch::nn::Embedding table = nullptr;   // (16 * 17, U), by cell and rank; only directions count.
  torch::nn::Linear mix = nullptr;        // (G, U)
  torch::nn::ModuleList gates = nullptr;  // Of Linear (F, G), for each layer but the first,
  torch::nn::ModuleList ups = nullptr;    // as these
  torch::nn::ModuleList downs = nullptr;  // and these, (G, F).
  torch::nn::Linear head = nullptr;       // (4 or 4 N, G)

 private:
  torch::Tensor Normed(const torch::Tensor& x) const;  // (B, G), as the encoder's rows are.
};
TORCH_MODULE(Glance);

void InitGlance(Glance& glance, uint64_t seed);

// Makes the encoder compute what `glance` does, to rounding. Both have the same config. Keys and
// other parts that take no part yet stay as they are, so that they can learn.
void WriteInto(GlanceImpl& glance, Encoder& net);

}  // namespace kibitz::twenty48
