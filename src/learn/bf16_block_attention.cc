#include "learn/bf16_block_attention.h"

#include <algorithm>

#include "nn/kernels/aligned.h"
#include "nn/kernels/bf16_gemm.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::AlignedArray;
using nn::Bf16Factor;
using nn::Bf16Side;
using nn::FloatMatrix;
using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::Store;

constexpr int64_t kKeys = kBf16BlockRows;

// Columns of one key head of one block.
FloatMatrix HeadRows(const Bf16BlockSizes& sizes, const float* from, int64_t block, int64_t head) {
  return {from + block * kKeys * sizes.kv_width() + head * sizes.e, sizes.kv_width(), kKeys,
          sizes.e};
}

// The rows of all query heads of a key head, one head after another: (G 16, padded).
class QueryRows {
 public:
  explicit QueryRows(const Bf16BlockSizes& sizes)
      : sizes_(sizes),
        padded_(nn::RoundUp(sizes.e, nn::kAmxRows)),
        rows_(sizes.queries() * padded_) {}

  FloatMatrix Gather(const float* from, int64_t block, int64_t kv_head) {
    ForEachRow(block, kv_head,
               [&](int64_t at, float* row) { std::copy_n(from + at, sizes_.e, row); });
    return matrix();
  }
  void Scatter(float* to, int64_t block, int64_t kv_head) {
    ForEachRow(block, kv_head,
               [&](int64_t at, const float* row) { std::copy_n(row, sizes_.e, to + at); });
  }
  FloatMatrix matrix() const { return {rows_.data(), padded_, sizes_.queries(), sizes_.e}; }
  float* data() { return rows_.data(); }
  int64_t row() const { return padded_; }

 private:
  template <typename Body>
  void ForEachRow(int64_t block, int64_t kv_head, const Body& body) {
    float* row = rows_.data();
    for (int64_t head = kv_head; head < sizes_.heads; head += sizes_.kv_heads) {
      for (int64_t i = 0; i < kKeys; ++i, row += padded_) {
        body((block * kKeys + i) * sizes_.width() + head * sizes_.e, row);
      }
    }
  }

  Bf16BlockSizes sizes_;
  int64_t padded_;
  AlignedArray<float> rows_;
};

// out (rows, columns) = left * right.
void Product(const Bf16Factor& left, const Bf16Factor& right, int64_t rows, int64_t columns,
             float* out, int64_t out_row) {
  nn::MultiplyBf16({.left = left.all(),
                    .right = right.all(),
                    .depth_tiles = left.depth_tiles(),
                    .rows = rows,
                    .columns = columns,
                    .out = out,
                    .out_row = out_row});
}

// Scores (keys, queries) become shares: each column sums to 1.
void SoftmaxDown(float* scores, int64_t queries, float scale) {
  for (int64_t q = 0; q < queries; q += kLanes) {
    Lanes largest = Load(scores + q);
    for (int64_t key = 1; key < kKeys; ++key) {
      largest = nn::Larger(largest, Load(scores + key * queries + q));
    }
    Lanes sum{};
    for (int64_t key = 0; key < kKeys; ++key) {
      float* at = scores + key * queries + q;
      const Lanes share = nn::QuickExp((Load(at) - largest) * scale);
      Store(at, share);
      sum += share;
    }
    const Lanes factor = 1.0F / sum;
    for (int64_t key = 0; key < kKeys; ++key) {
      float* at = scores + key * queries + q;
      Store(at, Load(at) * factor);
    }
  }
}

// Gradients of shares become those of scores: scale * share * (gradient - sum of both over the
// column).
void SoftmaxDownBackward(const float* shares, float* gradients, int64_t queries, float scale) {
  for (int64_t q = 0; q < queries; q += kLanes) {
    Lanes sum{};
    for (int64_t key = 0; key < kKeys; ++key) {
      sum += Load(shares + key * queries + q) * Load(gradients + key * queries + q);
    }
    for (int64_t key = 0; key < kKeys; ++key) {
      float* at = gradients + key * queries + q;
      Store(at, Load(shares + key * queries + q) * (Load(at) - sum) * scale);
    }
  }
}

}  // namespace

void AttendBlocksBf16(const Bf16BlockSizes& sizes, int64_t blocks, const Bf16BlockForward& data) {
  const nn::AmxTiles tiles;
  const int64_t queries = sizes.queries();
  QueryRows rows(sizes);
  const Bf16Factor keys(kKeys, sizes.e);     // Left.
  const Bf16Factor values(sizes.e, kKeys);   // Right.
  const Bf16Factor asked(queries, sizes.e);  // Right.
  const Bf16Factor weights(queries, kKeys);  // Left.
  float* shares = data.shares;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t head = 0; head < sizes.kv_heads; ++head, shares += kKeys * queries) {
      nn::PackByLines(HeadRows(sizes, data.k, block, head), Bf16Side::kLeft, keys.all());
      nn::PackByDepth(HeadRows(sizes, data.v, block, head), Bf16Side::kRight, values.all());
      nn::PackByLines(rows.Gather(data.q, block, head), Bf16Side::kRight, asked.all());
      Product(keys, asked, kKeys, queries, shares, queries);
      SoftmaxDown(shares, queries, sizes.scale);
      nn::PackByDepth({shares, queries, kKeys, queries}, Bf16Side::kLeft, weights.all());
      Product(weights, values, queries, rows.row(), rows.data(), rows.row());
      rows.Scatter(data.out, block, head);
    }
  }
}

// With P the shares and S the scores: dV = P^T dO, dP^T = V dO^T, dK = dS^T Q, dQ = dS K.
void AttendBlocksBackwardBf16(const Bf16BlockSizes& sizes, int64_t blocks,
                              const Bf16BlockBackward& data) {
  const nn::AmxTiles tiles;
  const int64_t queries = sizes.queries();
  QueryRows q_rows(sizes);
  QueryRows dout_rows(sizes);
  const Bf16Factor values(kKeys, sizes.e);   // Left.
  const Bf16Factor keys(sizes.e, kKeys);     // Right.
  const Bf16Factor douts(queries, sizes.e);  // Right, by lines.
  const Bf16Factor mixed(sizes.e, queries);  // Right, by depth: dO, then Q.
  const Bf16Factor weights(kKeys, queries);  // Left: P^T, then dS^T.
  const Bf16Factor dscores(queries, kKeys);  // Left.
  AlignedArray<float> gradients(kKeys * queries);
  AlignedArray<float> key_rows(kKeys * q_rows.row());
  const auto to_keys = [&](const float* shares, const FloatMatrix& rows, float* out, int64_t block,
                           int64_t head) {
    nn::PackByLines({shares, queries, kKeys, queries}, Bf16Side::kLeft, weights.all());
    nn::PackByDepth(rows, Bf16Side::kRight, mixed.all());
    Product(weights, mixed, kKeys, q_rows.row(), key_rows.data(), q_rows.row());
    float* to = out + block * kKeys * sizes.kv_width() + head * sizes.e;
    for (int64_t i = 0; i < kKeys; ++i) {
      std::copy_n(key_rows.data() + i * q_rows.row(), sizes.e, to + i * sizes.kv_width());
    }
  };
  const float* shares = data.shares;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t head = 0; head < sizes.kv_heads; ++head, shares += kKeys * queries) {
      const FloatMatrix dout = dout_rows.Gather(data.dout, block, head);
      const FloatMatrix q = q_rows.Gather(data.q, block, head);
      to_keys(shares, dout, data.dv, block, head);
      nn::PackByLines(HeadRows(sizes, data.v, block, head), Bf16Side::kLeft, values.all());
      nn::PackByLines(dout, Bf16Side::kRight, douts.all());
      Product(values, douts, kKeys, queries, gradients.data(), queries);
      SoftmaxDownBackward(shares, gradients.data(), queries, sizes.scale);
      to_keys(gradients.data(), q, data.dk, block, head);
      nn::PackByDepth(HeadRows(sizes, data.k, block, head), Bf16Side::kRight, keys.all());
      nn::PackByDepth({gradients.data(), queries, kKeys, queries}, Bf16Side::kLeft, dscores.all());
      Product(dscores, keys, queries, q_rows.row(), q_rows.data(), q_rows.row());
      q_rows.Scatter(data.dq, block, head);
    }
  }
}

}  // namespace kibitz::learn
