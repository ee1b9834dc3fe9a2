// Attention with KV caches: new tokens attend to all tokens before them. Letters: H heads, E width
// of a head, T positions.
//
//   KvCache cache({.layers = 12, .heads = 16, .head_width = 64, .positions = 1024});
//   const Segment segments[] = {{.cache = &cache, .first = 0, .rows = 2, .block = true}};
//   const Attention attention(segments, 16, 64);             // Once a pass; then for each layer:
//   attention.Remember(layer, 0, keys, values);              // Every row,
//   attention.Remember(layer, 1, keys + 1024, values + 1024);
//   const int64_t rows[] = {1};                              // and what is wanted.
//   attention.Run(team, {.layer = layer, .rows = rows, .queries = queries, .stride = 1024,
//                        .out = out});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/kernels/aligned.h"
#include "nn/kernels/bf16.h"
#include "nn/kernels/team.h"
#include "nn/transformer/attention_keys.h"
#include "nn/transformer/bf16_attention.h"

namespace kibitz::nn {

struct CacheSizes {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t positions = 0;
  // Keys, values and products in bfloat16: half the memory and half the time. Needs
  // HasAvx512Bf16().
  bool bf16 = false;
};

// The keys and values of one stream of tokens, for every layer. Positions may be overwritten: the
// caller knows how many are valid.
class KvCache {
 public:
  explicit KvCache(const CacheSizes& sizes);

  const CacheSizes& sizes() const { return sizes_; }

  // Keys lie in panels of kTileColumns positions: (panels, E, kTileColumns).
  float* Keys(int64_t layer, int64_t head);
  // (T, E rounded up to whole tiles)
  float* Values(int64_t layer, int64_t head);
  // With bf16, instead of both.
  Bf16Cache Rounded(int64_t layer, int64_t head);

 private:
  CacheSizes sizes_;
  int64_t key_size_ = 0;  // Numbers of one layer's head.
  int64_t value_size_ = 0;
  AlignedArray<float> keys_;
  AlignedArray<float> values_;
  AlignedArray<Bf16> rounded_keys_;
  AlignedArray<Bf16> rounded_values_;
};

// How a token stands in its stream, where that is not its place alone.
struct RowView {
  int32_t turn = 0;  // The position that rotates its query and key.
  // Tokens before it that it does not see, from the stream's begin on.
  int32_t hidden_begin = 0;
  int32_t hidden_end = 0;

  bool operator==(const RowView&) const = default;
};

// Consecutive tokens of one stream.
struct Segment {
  KvCache* cache = nullptr;
  int64_t first = 0;                    // Position of the first token.
  int64_t rows = 0;                     // Number of tokens.
  bool block = false;                   // Bidirectional among themselves; else causal.
  std::span<const RowView> views = {};  // Of the tokens; none: each sees all before it.
};

// What one layer asks for.
struct AttentionQueries {
  int64_t layer = 0;
  std::span<const int64_t> rows = {};  // Of the pass, ascending.
  const float* queries = nullptr;      // (number of `rows`, H, E), rows `stride` apart.
  int64_t stride = 0;
  float* out = nullptr;  // (number of `rows`, H, E)
};

class Attention {
 public:
  // Rows of the segments, one after another, are the rows of all matrices below.
  Attention(std::span<const Segment> segments, int64_t heads, int64_t head_width);

  int64_t rows() const { return rows_; }
  // The position that rotates its query and key.
  int64_t TurnOf(int64_t row) const { return places_[static_cast<size_t>(row)].view.turn; }

  // Stores the keys and values of a row, (H, E) each.
  void Remember(int64_t layer, int64_t row, const float* keys, const float* values) const;

  // out = softmax(q k / sqrt(E)) v. All rows of the pass must be remembered.
  void Run(Team& team, const AttentionQueries& asked) const;

 private:
  struct Place {
    KvCache* cache = nullptr;
    int64_t position = 0;
    int64_t seen = 0;  // It attends to positions 0 to seen - 1 of its stream, ...
    RowView view;      // ... without those hidden.
  };
  // Consecutive wanted rows of one stream.
  struct Chunk {
    int64_t first = 0;
    KvCache* cache = nullptr;
    KeyRange keys = {};              // Of all its rows, ...
    std::vector<RowKeys> rows = {};  // ... and of each, counted in that range.
  };
  std::vector<Chunk> ChunksOf(std::span<const int64_t> rows) const;
  void RunChunk(const AttentionQueries& asked, const Chunk& chunk, int64_t head) const;
  void RunRoundedChunk(const AttentionQueries& asked, const Chunk& chunk, int64_t head) const;

  int64_t heads_;
  int64_t head_width_;
  int64_t rows_ = 0;
  std::vector<Place> places_;
};

}  // namespace kibitz::nn
