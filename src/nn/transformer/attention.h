// Attention of new tokens to all before them, whose keys and values are kept. Letters: H heads, E
// numbers of a head, T positions.
//
//   KvCache cache({.layers = 12, .heads = 16, .head_width = 64, .positions = 1024});
//   const Segment segments[] = {{.cache = &cache, .first = 0, .rows = 68, .block = true}};
//   Attention attention(segments, 16, 64);                   // Once a pass ...
//   attention.Remember(layer, rows, keys, values);          // ... and for each layer.
//   attention.Run(team, layer, queries, out);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/kernels/aligned.h"
#include "nn/kernels/team.h"

namespace kibitz::nn {

struct CacheSizes {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t positions = 0;
};

// The keys and values of one stream of tokens, for every layer. What is behind a position may be
// written again: whoever uses it says how far it is valid.
class KvCache {
 public:
  explicit KvCache(const CacheSizes& sizes);

  const CacheSizes& sizes() const { return sizes_; }
  // Bytes for each position.
  static size_t BytesPerPosition(const CacheSizes& sizes);

  // Keys lie in panels of kTileColumns positions: (panels, E, kTileColumns).
  float* Keys(int64_t layer, int64_t head);
  // (T, E rounded up to whole tiles)
  float* Values(int64_t layer, int64_t head);

 private:
  CacheSizes sizes_;
  int64_t key_size_ = 0;  // Of one layer's head.
  int64_t value_size_ = 0;
  AlignedArray<float> keys_;
  AlignedArray<float> values_;
};

// Tokens that follow each other in one stream.
struct Segment {
  KvCache* cache = nullptr;
  int64_t first = 0;   // Position of the first.
  int64_t rows = 0;    // How many.
  bool block = false;  // They see each other both ways; else each sees up to itself.
};

class Attention {
 public:
  // Rows of the segments, one after another, are the rows of all matrices below.
  Attention(std::span<const Segment> segments, int64_t heads, int64_t head_width);

  int64_t rows() const { return rows_; }
  // Position in its stream.
  int64_t PositionOf(int64_t row) const { return places_[static_cast<size_t>(row)].position; }

  // Stores the keys and values of a row, (H, E) each.
  void Remember(int64_t layer, int64_t row, const float* keys, const float* values) const;

  // softmax(q k / sqrt(E)) v for some rows of the pass, in ascending order; all must be remembered.
  // queries and out: (number of `rows`, H, E), rows `stride` apart in queries.
  void Run(Team& team, int64_t layer, std::span<const int64_t> rows, const float* queries,
           int64_t stride, float* out) const;

 private:
  struct Place {
    KvCache* cache = nullptr;
    int64_t position = 0;
    int64_t seen = 0;  // Positions 0 to seen - 1 of its stream.
  };
  // Some of the rows asked for, of one stream.
  struct Chunk {
    int64_t first = 0;
    int64_t count = 0;
    int64_t seen = 0;  // The most of its rows.
  };
  std::vector<Chunk> ChunksOf(std::span<const int64_t> rows) const;
  struct Request;
  void RunChunk(const Request& request, const Chunk& chunk, int64_t head) const;

  int64_t heads_;
  int64_t head_width_;
  int64_t rows_ = 0;
  std::vector<Place> places_;
};

}  // namespace kibitz::nn
