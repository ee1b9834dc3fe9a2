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

// softmax(scale * scores) over what the row sees, in place; the others, which may hold anything,
// become 0. `size` is a multiple of kLanes.
void Softmax(float* scores, const RowKeys& row, int64_t size, float scale) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::fill(scores + row.seen, scores + size, kNone);
  std::fill(scores + row.hidden_begin, scores + row.hidden_end, kNone);
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

// The keys that these rows see together; makes the rows count in them.
KeyRange LeaveOutHidden(std::span<RowKeys> rows) {
  int64_t seen = 0;
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  for (const RowKeys& row : rows) {
    seen = std::max(seen, row.seen);
    begin = std::max(begin, row.hidden_begin);
    end = std::min(end, row.hidden_end);
  }
  begin = RoundUp(begin, kKeyPanel);
  const int64_t gap = std::max<int64_t>(0, end / kKeyPanel * kKeyPanel - begin);
  for (RowKeys& row : rows) {
    row.seen -= gap;
    row.hidden_end -= gap;
  }
  return {.count = seen - gap, .gap_begin = begin, .gap = gap};
}

}  // namespace

KvCache::KvCache(const CacheSizes& sizes) : sizes_(sizes) {
  const int64_t heads = sizes.layers * sizes.heads;
  const int64_t panel = sizes.bf16 ? Bf16Cache::kPanel : kTileColumns;
  const int64_t padded = RoundUp(sizes.head_width, panel);
  key_size_ = RoundUp(sizes.positions, panel) * (sizes.bf16 ? padded : sizes.head_width);
  value_size_ = (sizes.bf16 ? RoundUp(sizes.positions, panel) : sizes.positions) * padded;
  if (sizes.bf16) {
    rounded_keys_ = AlignedArray<Bf16>(heads * key_size_);
    rounded_values_ = AlignedArray<Bf16>(heads * value_size_);
  } else {
    keys_ = AlignedArray<float>(heads * key_size_);
    values_ = AlignedArray<float>(heads * value_size_);
  }
}

float* KvCache::Keys(int64_t layer, int64_t head) {
  return keys_.data() + (layer * sizes_.heads + head) * key_size_;
}

float* KvCache::Values(int64_t layer, int64_t head) {
  return values_.data() + (layer * sizes_.heads + head) * value_size_;
}

Bf16Cache KvCache::Rounded(int64_t layer, int64_t head) {
  const int64_t index = layer * sizes_.heads + head;
  return {.keys = rounded_keys_.data() + index * key_size_,
          .values = rounded_values_.data() + index * value_size_,
          .positions = RoundUp(sizes_.positions, Bf16Cache::kPanel)};
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
    if (place.cache->sizes().bf16) {
      const int64_t at = head * head_width_;
      StoreBf16(place.cache->Rounded(layer, head), place.position, keys + at, values + at,
                head_width_);
      continue;
    }
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
  for (size_t i = 0; i < rows.size(); ++i) {
    const Place& place = places_[static_cast<size_t>(rows[i])];
    if (chunks.empty() || place.cache != chunks.back().cache ||
        chunks.back().rows.size() == kChunkRows) {
      chunks.push_back({.first = static_cast<int64_t>(i), .cache = place.cache});
    }
    chunks.back().rows.push_back({.seen = place.seen,
                                  .hidden_begin = place.view.hidden_begin,
                                  .hidden_end = place.view.hidden_end});
  }
  for (Chunk& chunk : chunks) chunk.keys = LeaveOutHidden(chunk.rows);
  return chunks;
}

void Attention::Run(Team& team, const AttentionQueries& asked) const {
  const std::vector<Chunk> chunks = ChunksOf(asked.rows);
  const auto count = static_cast<int64_t>(chunks.size());
  int64_t scores = 0;
  for (const Chunk& chunk : chunks) {
    scores += static_cast<int64_t>(chunk.rows.size()) * chunk.keys.count * heads_;
  }
  // All chunks with the same head, one after another: its keys stay in cache.
  team.Run(count * heads_, 2 * scores * head_width_, [&](int64_t i) {
    const Chunk& chunk = chunks[static_cast<size_t>(i % count)];
    chunk.cache->sizes().bf16 ? RunRoundedChunk(asked, chunk, i / count)
                              : RunChunk(asked, chunk, i / count);
  });
}

void Attention::RunRoundedChunk(const AttentionQueries& asked, const Chunk& chunk,
                                int64_t head) const {
  KeyRange keys = chunk.keys;
  keys.count = RoundUp(keys.count, Bf16Cache::kPanel);
  AttendBf16({.cache = chunk.cache->Rounded(asked.layer, head),
              .width = head_width_,
              .keys = keys,
              .rows = chunk.rows,
              .queries = asked.queries + chunk.first * asked.stride + head * head_width_,
              .query_row = asked.stride,
              .out = asked.out + (chunk.first * heads_ + head) * head_width_,
              .out_row = heads_ * head_width_});
}

void Attention::RunChunk(const AttentionQueries& asked, const Chunk& chunk, int64_t head) const {
  const auto rows = static_cast<int64_t>(chunk.rows.size());
  const int64_t keys = RoundUp(chunk.keys.count, kTileColumns);
  thread_local AlignedArray<float> scratch;
  scratch.Reserve(kChunkRows * (keys + kTileColumns));
  float* scores = scratch.data();             // (kChunkRows, keys)
  float* mixed = scores + kChunkRows * keys;  // (kChunkRows, kTileColumns)

  const float* queries = asked.queries + chunk.first * asked.stride + head * head_width_;
  for (int64_t k = 0; k < keys; k += kTileColumns) {
    const float* panel =
        chunk.cache->Keys(asked.layer, head) + chunk.keys.PositionOf(k) * head_width_;
    for (int64_t row = 0; row < rows; row += kTileRows) {
      GemmTile({.a = {.data = queries + row * asked.stride, .row = asked.stride},
                .b = panel,
                .b_row = kTileColumns,
                .c = scores + row * keys + k,
                .c_row = keys,
                .rows = std::min(kTileRows, rows - row),
                .depth = head_width_});
    }
  }

  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  for (int64_t row = 0; row < rows; ++row) {
    Softmax(scores + row * keys, chunk.rows[static_cast<size_t>(row)], keys, scale);
  }

  const int64_t padded = RoundUp(head_width_, kTileColumns);
  const float* values = chunk.cache->Values(asked.layer, head);
  float* out = asked.out + (chunk.first * heads_ + head) * head_width_;
  for (int64_t e = 0; e < head_width_; e += kTileColumns) {
    for (int64_t k = 0; k < chunk.keys.count;) {
      const int64_t depth = chunk.keys.Together(k, kValueRows);
      for (int64_t row = 0; row < rows; row += kTileRows) {
        GemmTile({.a = {.data = scores + row * keys + k, .row = keys},
                  .b = values + chunk.keys.PositionOf(k) * padded + e,
                  .b_row = padded,
                  .c = mixed + row * kTileColumns,
                  .c_row = kTileColumns,
                  .rows = std::min(kTileRows, rows - row),
                  .depth = depth,
                  .add = k > 0});
      }
      k += depth;
    }
    const int64_t width = std::min(kTileColumns, head_width_ - e);
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(mixed + row * kTileColumns, width, out + row * heads_ * head_width_ + e);
    }
  }
}

}  // namespace kibitz::nn
