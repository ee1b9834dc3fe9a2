// A stack of transformer layers for inference: rows of many streams share each product, and each
// attends to its own KV cache. Pre-norm, rotary positions, SwiGLU. Letters: R rows, D width, H
// heads, E = D / H, F hidden width.
//
//   Transformer net(sizes, precision);
//   net.AddLayer(weights);                                   // Layer by layer; packed here.
//   net.SetFinalNorm(scale);
//   PassMemory memory;
//   memory.x.Reserve(68 * width);                            // Fill it with the embedded tokens.
//   net.Run(team, {.segments = segments, .wanted = {67}}, memory, stop);   // To memory.hidden.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "nn/kernels/linear.h"
#include "nn/transformer/attention.h"

namespace kibitz::nn {

struct TransformerSizes {
  int64_t width = 0;  // D
  int64_t heads = 0;
  int64_t hidden = 0;  // F
  int64_t positions = 0;
};

struct LayerWeights {
  std::span<const float> q = {};  // (D, D) each.
  std::span<const float> k = {};
  std::span<const float> v = {};
  std::span<const float> output = {};
  std::span<const float> w1 = {};              // (F, D)
  std::span<const float> w2 = {};              // (D, F)
  std::span<const float> w3 = {};              // (F, D)
  std::span<const float> attention_norm = {};  // (D)
  std::span<const float> mlp_norm = {};        // (D)
};

struct Pass {
  std::vector<Segment> segments;
  std::vector<int64_t> wanted;  // Rows whose hidden state is wanted, ascending.
};

// What passes read and write. One for each team that runs passes; only grows.
struct PassMemory {
  AlignedArray<float> x;       // (R, D): the embedded tokens; overwritten.
  AlignedArray<float> hidden;  // (wanted, D): their hidden states, after the final norm.
  // Between products.
  PackedRows packed;
  AlignedArray<float> qkv;
  AlignedArray<float> mixed;
  AlignedArray<float> gated;
};

// x / sqrt(mean(x^2) + epsilon) * scale
void RmsNorm(const float* x, std::span<const float> scale, float* out, float epsilon = 1e-6F);

class Transformer {
 public:
  Transformer(const TransformerSizes& sizes, Precision precision);
  void AddLayer(const LayerWeights& weights);
  void SetFinalNorm(std::span<const float> scale);

  const TransformerSizes& sizes() const { return sizes_; }
  // int8 attends in bfloat16 where the processor multiplies it.
  CacheSizes CacheFor(int64_t positions) const;
  size_t memory_bytes() const;
  // Floating-point operations of a pass in the layers' matrix products, for benches.
  double ProductFlops(int64_t rows, int64_t wanted) const;

  // From memory.x to memory.hidden. Stores keys and values of all rows. Returns false when stopped:
  // then the memory and the caches from the pass's first positions on are undefined. Several
  // threads may call it, each with its own team and memory.
  bool Run(Team& team, const Pass& pass, PassMemory& memory,
           const std::stop_token& stop = {}) const;

 private:
  struct Layer {
    std::vector<float> attention_norm;
    std::vector<float> mlp_norm;
    Linear qkv;
    Linear output;
    Linear gate_up;
    Linear down;
  };
  struct Rows;  // What a pass carries from layer to layer.
  // The two halves of a layer. They check the stop token between products and return early.
  void Attend(Team& team, int64_t layer, Rows& rows) const;
  void FeedForward(Team& team, const Layer& layer, Rows& rows) const;
  void Rotate(float* x, int64_t position) const;

  TransformerSizes sizes_;
  Precision precision_;
  std::vector<Layer> layers_;
  std::vector<float> final_norm_;
  AlignedArray<float> cosine_;  // (positions, E / 2)
  AlignedArray<float> sine_;
};

}  // namespace kibitz::nn
