#include "nn/transformer/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "nn/kernels/gemm_tile.h"

namespace kibitz::nn {
namespace {

// Rows whose scores are in memory at a time: a multiple of kTileRows.
constexpr int64_t kChunkRows = 24;
// Values that stay in L1 while a chunk's rows pass.
constexpr int64_t kValueRows = 96;

// softmax(scale * scores) over the first `seen` scores but those hidden, in place; the others,
// which may hold anything, become 0. `size` is a multiple of kLanes.
void Softmax(float* scores, int64_t seen, const RowView& view, int64_t size, float scale) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::fill(scores + seen, scores + size, kNone);
  std::fill(scores + view.hidden_begin, scores + view.hidden_end, kNone);
  Lanes largest = Load(scores);
  for (int64_t i = kLanes; i < size; i += kLanes) largest = Larger(largest, Load(scores + i));
  float top = largest[0];
  for (int64_t i = 1; i < kLanes; ++i) top = std::max(top, largest[i]);
  Lanes sums{};
  for (int64_t i = 0; i < size; i += kLanes) {
    const Lanes weight = Exp((Load(scores + i) - top) * scale);
    sums += weight;
    Store(scores + i, weight);
  }
  const Lanes factor = Spread(1 / Sum(sums));
  for (int64_t i = 0; i < size; i += kLanes) Store(scores + i, Load(scores + i) * factor);
}

}  // namespace

KvCache::KvCache(const CacheSizes& sizes)
    : sizes_(sizes),
      key_size_(RoundUp(sizes.positions, kTileColumns) * sizes.head_width),
      value_size_(sizes.positions * RoundUp(sizes.head_width, kTileColumns)),
      keys_(sizes.layers * sizes.heads * key_size_),
      values_(sizes.layers * sizes.heads * value_size_) {}

size_t KvCache::BytesPerPosition(const CacheSizes& sizes) {
  return static_cast<size_t>(sizes.layers * sizes.heads *
                             (sizes.head_width + RoundUp(sizes.head_width, kTileColumns))) *
         sizeof(float);
}

float* KvCache::Keys(int64_t layer, int64_t head) {
  return keys_.data() + (layer * sizes_.heads + head) * key_size_;
}

float* KvCache::Values(int64_t layer, int64_t head) {
  return values_.data() + (layer * sizes_.heads + head) * value_size_;
}

Attention::Attention(std::span<const Segment> segments, int64_t heads, int64_t head_width)
    : heads_(heads), head_width_(head_width) {
  for (const Segment& segment : segments) {
    const int64_t end = segment.first + segment.rows;
    CHECK(end <= segment.cache->sizes().positions);
    CHECK(segment.views.empty() || segment.views.size() == static_cast<size_t>(segment.rows));
    for (int64_t i = segment.first; i < end; ++i) {
      RowView view = {.turn = static_cast<int32_t>(i)};
      if (!segment.views.empty()) view = segment.views[static_cast<size_t>(i - segment.first)];
      CHECK(view.hidden_begin <= view.hidden_end && view.hidden_end <= i);
      places_.push_back({.cache = segment.cache,
                         .position = i,
                         .seen = segment.block ? end : i + 1,
                         .view = view});
    }
  }
  rows_ = static_cast<int64_t>(places_.size());
}

void Attention::Remember(int64_t layer, int64_t row, const float* keys, const float* values) const {
  const Place& place = places_[static_cast<size_t>(row)];
  const int64_t padded = RoundUp(head_width_, kTileColumns);
  for (int64_t head = 0; head < heads_; ++head) {
    float* key = place.cache->Keys(layer, head) +
                 place.position / kTileColumns * kTileColumns * head_width_ +
                 place.position % kTileColumns;
    for (int64_t e = 0; e < head_width_; ++e) {
      key[e * kTileColumns] = keys[head * head_width_ + e];
    }
    std::copy_n(values + head * head_width_, head_width_,
                place.cache->Values(layer, head) + place.position * padded);
  }
}

std::vector<Attention::Chunk> Attention::ChunksOf(std::span<const int64_t> rows) const {
  std::vector<Chunk> chunks;
  const KvCache* cache = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Place& place = places_[static_cast<size_t>(rows[i])];
    if (chunks.empty() || place.cache != cache || chunks.back().count == kChunkRows) {
      chunks.push_back({.first = static_cast<int64_t>(i)});
      cache = place.cache;
    }
    ++chunks.back().count;
    chunks.back().seen = std::max(chunks.back().seen, place.seen);
  }
  return chunks;
}

void Attention::Run(Team& team, const AttentionQueries& asked) const {
  const std::vector<Chunk> chunks = ChunksOf(asked.rows);
  team.Run(static_cast<int64_t>(chunks.size()) * heads_, [&](int64_t i) {
    RunChunk(asked, chunks[static_cast<size_t>(i / heads_)], i % heads_);
  });
}

void Attention::RunChunk(const AttentionQueries& asked, const Chunk& chunk, int64_t head) const {
  const int64_t keys = RoundUp(chunk.seen, kTileColumns);
  thread_local AlignedArray<float> scratch;
  scratch.Reserve(kChunkRows * (keys + kTileColumns));
  float* scores = scratch.data();             // (kChunkRows, keys)
  float* mixed = scores + kChunkRows * keys;  // (kChunkRows, kTileColumns)
  const auto place_of = [&](int64_t row) -> const Place& {
    return places_[static_cast<size_t>(asked.rows[static_cast<size_t>(chunk.first + row)])];
  };
  KvCache& cache = *place_of(0).cache;

  const float* queries = asked.queries + chunk.first * asked.stride + head * head_width_;
  const float* key = cache.Keys(asked.layer, head);
  for (int64_t k = 0; k < keys; k += kTileColumns, key += kTileColumns * head_width_) {
    for (int64_t row = 0; row < chunk.count; row += kTileRows) {
      GemmTile({.a = {.data = queries + row * asked.stride, .row = asked.stride},
                .b = key,
                .b_row = kTileColumns,
                .c = scores + row * keys + k,
                .c_row = keys,
                .rows = std::min(kTileRows, chunk.count - row),
                .depth = head_width_});
    }
  }

  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  for (int64_t row = 0; row < chunk.count; ++row) {
    Softmax(scores + row * keys, place_of(row).seen, place_of(row).view, keys, scale);
  }

  const int64_t padded = RoundUp(head_width_, kTileColumns);
  const float* values = cache.Values(asked.layer, head);
  float* out = asked.out + chunk.first * heads_ * head_width_ + head * head_width_;
  for (int64_t e = 0; e < head_width_; e += kTileColumns) {
    const int64_t width = std::min(kTileColumns, head_width_ - e);
    for (int64_t k = 0; k < chunk.seen; k += kValueRows) {
      for (int64_t row = 0; row < chunk.count; row += kTileRows) {
        GemmTile({.a = {.data = scores + row * keys + k, .row = keys},
                  .b = values + k * padded + e,
                  .b_row = padded,
                  .c = mixed + row * kTileColumns,
                  .c_row = kTileColumns,
                  .rows = std::min(kTileRows, chunk.count - row),
                  .depth = std::min(kValueRows, chunk.seen - k),
                  .add = k > 0});
      }
    }
    for (int64_t row = 0; row < chunk.count; ++row) {
      std::copy_n(mixed + row * kTileColumns, width, out + row * heads_ * head_width_ + e);
    }
  }
}

}  // namespace kibitz::nn
