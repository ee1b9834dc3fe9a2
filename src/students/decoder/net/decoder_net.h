// The decoder: a transformer that reads boards, moves and values as tokens. Plain form: rows padded
// to one length, masks written out. Letters: B rows, S positions, D width, K buckets, V board
// vocabulary, M move vocabulary.
//
//   DecoderNet net(config);
//   InitNet(net, seed);                                           // Or:
//   LoadWeights(*net, StateDict::From(io::ReadPt(path), path), path);
//   auto hidden = net->forward(ids, CausalBias(S), values, Pass::kCausal);  // (B, S, D)
//   auto board = net->board_head(hidden);                         // (B, S, V)
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "learn/transformer.h"
#include "learn/weights.h"
#include "students/decoder/data/net_config.h"

namespace kibitz::decoder {

// A number as a vector: cosines, then sines of 2 pi x f for learned f, and a projection.
struct FourierEncoderImpl : torch::nn::Module {
  FourierEncoderImpl(int64_t frequencies, int64_t width);
  torch::Tensor Features(const torch::Tensor& x);  // (N) -> (N, 2 frequencies)
  torch::Tensor forward(const torch::Tensor& x) { return proj(Features(x)); }  // (N) -> (N, D)

  torch::Tensor frequencies;  // (1, frequencies)
  torch::nn::Linear proj = nullptr;
};
TORCH_MODULE(FourierEncoder);

// Linear, Mish, Linear. With `squares`, the first layer also reads the squares of a move.
struct ValueHeadImpl : torch::nn::Module {
  ValueHeadImpl(int64_t width, int64_t hidden, int64_t buckets, bool squares);
  torch::Tensor forward(const torch::Tensor& x) { return mlp->forward(x); }  // (N, D) -> (N, K)

  torch::nn::Sequential mlp = nullptr;
  torch::nn::Linear from = nullptr;  // D -> hidden, without bias; with squares alone.
  torch::nn::Linear to = nullptr;
};
TORCH_MODULE(ValueHead);

// Values that replace the embeddings of wl_value and d_value tokens; all (B, S).
struct ValueInputs {
  torch::Tensor wl_values;  // Bucket centres; used only at the positions.
  torch::Tensor d_values;
  torch::Tensor wl_positions;  // bool
  torch::Tensor d_positions;   // bool
};

// The causal pass writes boards; in the prefix pass a board is read whole.
enum class Pass { kCausal, kPrefix };

struct DecoderNetImpl : torch::nn::Module {
  explicit DecoderNetImpl(const NetConfig& config);

  // What goes into the first layer. ids: (B, S).
  torch::Tensor Embed(const torch::Tensor& ids, const ValueInputs& values, Pass pass);  // (B, S, D)
  // All layers and the final norm. bias: (B or 1, 1, S, S).
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& bias,
                        const ValueInputs& values, Pass pass);  // (B, S, D)

  const NetConfig config;
  learn::RotaryTable rotary;        // Follows from the config: not saved.
  torch::Tensor wl_bucket_centers;  // (K)
  torch::Tensor d_bucket_centers;   // (K)
  torch::nn::Embedding tok_embedding = nullptr;
  torch::nn::Embedding place_embedding = nullptr;   // (kPlaceRows, D), with board_places.
  torch::nn::Embedding before_embedding = nullptr;  // (kBeforeRows, D), with board_before.
  torch::nn::Embedding sight_embedding = nullptr;   // (kSightRows, D), with square_sight.
  torch::nn::Embedding attack_embedding = nullptr;  // (kAttackRows, D), with square_attacks.
  torch::nn::ModuleList layers = nullptr;           // Of TransformerLayer.
  learn::RmsNorm norm = nullptr;
  torch::nn::Linear board_head = nullptr;            // D -> V
  torch::nn::Linear policy_head = nullptr;           // D -> M
  torch::nn::Linear thinking_policy_head = nullptr;  // D -> M
  torch::nn::Linear line_vote = nullptr;             // D -> 1, with line_votes.
  torch::nn::Linear value_vote = nullptr;            // 2 -> 1, with value_votes.
  torch::nn::Linear compare_vote = nullptr;          // 3 -> 1, with compared_votes.
  ValueHead wl_head = nullptr;
  ValueHead d_head = nullptr;
  FourierEncoder fourier_encoder = nullptr;
};
TORCH_MODULE(DecoderNet);

// Weights as PyTorch's constructors would draw them, and frequencies from N(0, 1).
void InitNet(DecoderNet& net, uint64_t seed);

// Masks as numbers to add to scores: 0 or -infinity.
torch::Tensor CausalBias(int64_t length);  // (1, 1, S, S)
// Causal, or in the same block. block_id: (B, S).
torch::Tensor PrefixBias(const torch::Tensor& block_id);  // (B, 1, S, S)

}  // namespace kibitz::decoder
