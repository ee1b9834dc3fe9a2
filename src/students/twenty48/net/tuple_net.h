// The 2048 network over patterns of four cells. Each pattern of the board (data/tuples.h) looks up
// a short learned vector by its tiles, so that combinations of tiles need not be computed. The
// board's row is a projection of all these vectors, plus one vector for each tile; each pattern's
// row is a projection of its own. Encoder layers follow, and the heads read the board's row.
//
// Without attention only the board's row remains, a sixteenth of the work. The weights have the
// same names: LoadWeightsInto takes them as a warm start, whose logits the network with attention
// then gives. Letters: B boards, P = 17 patterns, E numbers of a pattern, D width, N bins.
//
//   TupleNet net(config, /*attention=*/false);
//   InitTupleNet(net, seed);
//   auto logits = net->forward(tokens);                  // (B, 4, N) or (B, 4)
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "students/twenty48/data/net_config.h"
#include "students/twenty48/net/encoder.h"

namespace kibitz::twenty48 {

struct TupleNetImpl : torch::nn::Module {
  // CHECKs that config.tuple_width is not 0.
  TupleNetImpl(const NetConfig& config, bool attention);

  // tokens: (B, 16), int64. Logits: (B, 4, N), or (B, 4) of a policy.
  torch::Tensor forward(const torch::Tensor& tokens, Form form = Form::kFused);

  const NetConfig config;
  const bool attention;
  torch::nn::Embedding tuples = nullptr;     // (P * 15^4, E)
  torch::nn::Embedding tiles = nullptr;      // (16 * 17, D), by cell and rank.
  torch::nn::Linear board_proj = nullptr;    // (D, P E), no bias: to the board's row.
  torch::Tensor tuple_proj;                  // (P, E, D): to the patterns' rows.
  torch::nn::Embedding positions = nullptr;  // (15, D): of the patterns' rows.
  torch::nn::ModuleList blocks = nullptr;    // Of Block.
  Norm final_ln = nullptr;
  Heads heads;

 private:
  torch::Tensor LookUp(const torch::Tensor& tokens, Form form);                     // (B, P, E)
  torch::Tensor BoardRows(const torch::Tensor& tokens, const torch::Tensor& seen);  // (B, D)
  torch::Tensor AllRows(const torch::Tensor& board, const torch::Tensor& seen);     // (16 B, D)
  torch::Tensor RunBlocks(const torch::Tensor& rows, Form form);  // The board's rows, (B, D).
};
TORCH_MODULE(TupleNet);

// The patterns' vectors start at zero: a combination of tiles that was never seen adds nothing. So
// do the outputs of attention.
void InitTupleNet(TupleNet& net, uint64_t seed);

// As the encoder's LoadWeightsInto. Where a file without attention fills a network with it, the
// patterns' rows start as their terms of the board's row. Layers that only the network has change
// nothing at first.
void LoadWeightsInto(TupleNet& net, const std::string& path);

}  // namespace kibitz::twenty48
