// The 2048 network without attention: the mean over the cells of one vector for each tile in its
// cell, then the MLPs of all encoder layers but the first, then the heads. One row a board instead
// of sixteen, so a fortieth of the work. It is a warm start: WriteInto copies it into the encoder,
// which then gives the same logits and learns with attention from there. Letters: B boards,
// D width, F hidden width, G numbers of a tile and of a board.
//
//   AttentionFree small(config);
//   InitAttentionFree(small, seed);
//   auto logits = small->forward(tokens);   // (B, 4, N) or (B, 4), as the encoder's.
//   WriteInto(*small, encoder);             // encoder->forward(tokens) is the same now.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "students/twenty48/data/net_config.h"
#include "students/twenty48/net/encoder.h"

namespace kibitz::twenty48 {

struct AttentionFreeImpl : torch::nn::Module {
  // CHECKs that CheckAttentionFree(config) holds.
  explicit AttentionFreeImpl(const NetConfig& config);

  torch::Tensor forward(const torch::Tensor& tokens);  // tokens: (B, 16), int64.

  const NetConfig config;
  torch::nn::Embedding table =
      nullptr;                      // (16 * 17, G), by cell and rank; forward normalizes the rows.
  torch::nn::Linear mix = nullptr;  // (G, G)
  torch::nn::ModuleList gates = nullptr;  // Of Linear (F, G), one for each layer but the first.
  torch::nn::ModuleList ups = nullptr;    // Likewise.
  torch::nn::ModuleList downs = nullptr;  // Likewise, (G, F).
  torch::nn::Linear head = nullptr;       // (4 or 4 N, G)

 private:
  torch::Tensor Normed(const torch::Tensor& x) const;  // (B, G), by the RMS of the encoder's row.
};
TORCH_MODULE(AttentionFree);

void InitAttentionFree(AttentionFree& small, uint64_t seed);

// Makes the encoder give the logits of `small`, to rounding. Both have the same config. Weights
// that have no effect yet, such as the keys, keep their initial values, so that they can learn.
void WriteInto(AttentionFreeImpl& small, Encoder& net);

}  // namespace kibitz::twenty48
