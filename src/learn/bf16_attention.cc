// Scores lie transposed, (keys, queries): a vector holds one key's scores of neighbouring queries,
// so that softmax needs no sums across a vector, and products take the weights as they lie.
#include "learn/bf16_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nn/kernels/bf16_gemm.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::Bf16Factor;
using nn::Bf16Side;
using nn::kAmxDepth;
using nn::kAmxRows;
using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::RoundUp;
using nn::Store;

// Queries of a block: the depth of a tile.
constexpr int64_t kQueries = kAmxDepth;
constexpr float kNever = -std::numeric_limits<float>::infinity();

int64_t DepthTiles(int64_t depth) { return RoundUp(depth, kAmxDepth) / kAmxDepth; }

// A number for each query of a block.
using QueryFloats = std::array<float, kQueries>;
using QueryInts = std::array<int32_t, kQueries>;

nn::IntLanes LoadInts(const int32_t* from) { return *reinterpret_cast<const nn::IntLanes*>(from); }

// Neighbouring queries and the keys they see.
struct TransposedBlock {
  TransposedBlock(const Job& job, const QueryRun& asked, int64_t first)
      : rows(std::min(kQueries, asked.count - first)), out_row(asked.out_begin + first) {
    seen.fill(0);
    hidden_begin.fill(0);
    hidden_end.fill(0);
    for (int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto row = static_cast<size_t>(out_row + i);
      seen[at] = job.plan.seen[row];
      if (job.plan.hidden.empty()) continue;
      hidden_begin[at] = job.plan.hidden[row].begin;
      hidden_end[at] = job.plan.hidden[row].end;
      hides |= hidden_begin[at] < hidden_end[at];
    }
    keys = seen[static_cast<size_t>(rows - 1)];
    columns = RoundUp(rows, kAmxRows);
  }

  // Keys before it are seen by all queries.
  int64_t FirstMasked() const { return hides ? 0 : seen[0]; }
  // Scores of a key, from query `q` on; kNever where it is not seen.
  Lanes Masked(Lanes scores, int64_t key, int64_t q) const {
    const auto k = static_cast<int32_t>(key);
    const nn::IntLanes is_seen = LoadInts(seen.data() + q) > k;
    const nn::IntLanes is_hidden =
        (LoadInts(hidden_begin.data() + q) <= k) & (LoadInts(hidden_end.data() + q) > k);
    return (is_seen & ~is_hidden) != 0 ? scores : nn::Spread(kNever);
  }

  int64_t rows;
  int64_t out_row;
  int64_t keys = 0;     // Seen by the last.
  int64_t columns = 0;  // Of the scores: whole tiles of queries.
  bool hides = false;
  QueryInts seen;
  QueryInts hidden_begin;
  QueryInts hidden_end;
};

// Calls body(key, q, masked) for every vector of scores.
template <typename Body>
void ForEachVector(const TransposedBlock& block, const Body& body) {
  const int64_t first_masked = std::min(block.FirstMasked(), block.keys);
  for (int64_t q = 0; q < block.columns; q += kLanes) {
    for (int64_t key = 0; key < first_masked; ++key) body(key, q, std::false_type());
    for (int64_t key = first_masked; key < block.keys; ++key) body(key, q, std::true_type());
  }
}

// scores (keys, kQueries) = a (keys, E) * b^T (E, queries).
void ScoresOf(const TransposedBlock& block, const Bf16Factor& a, const Bf16Factor& b,
              float* scores) {
  nn::MultiplyBf16({.left = a.all(),
                    .right = b.all(),
                    .depth_tiles = a.depth_tiles(),
                    .rows = RoundUp(block.keys, kAmxRows),
                    .columns = block.columns,
                    .out = scores,
                    .out_row = kQueries});
}

// out (queries, padded) = weights (queries, keys) * rows (keys, E), by way of the transpose.
struct Mixer {
  Mixer(const Job& job, JobMemory& memory)
      : sizes(job.sizes),
        weights(kQueries, RoundUp(job.run.k_count, kAmxDepth)),
        transposed(memory.Take(sizes.padded * kQueries)) {}

  // rows: (E, keys) as a left factor; scores: (keys, kQueries).
  void Mix(const TransposedBlock& block, const Bf16Factor& rows, const float* scores,
           float* out) const {
    nn::PackByDepth({scores, kQueries, block.keys, block.columns}, Bf16Side::kRight, weights.all());
    nn::MultiplyBf16({.left = rows.all(),
                      .right = weights.all(),
                      .depth_tiles = DepthTiles(block.keys),
                      .rows = RoundUp(sizes.head_width, kAmxRows),
                      .columns = block.columns,
                      .out = transposed,
                      .out_row = kQueries});
    nn::TransposeFloats({transposed, kQueries, sizes.head_width, block.rows}, out, sizes.padded);
  }

  Sizes sizes;
  Bf16Factor weights;
  float* transposed;  // (padded, kQueries)
};

// Scores become e^(score - largest), or about 0 where not seen; `softmax` has the largest in and
// the sums out.
struct ColumnSoftmax {
  QueryFloats largest;
  QueryFloats sum;
};

void SoftmaxColumns(const TransposedBlock& block, float* scores, ColumnSoftmax& softmax) {
  for (int64_t q = 0; q < block.columns; q += kLanes) {
    const auto at = static_cast<size_t>(q);
    const int64_t first_masked = std::min(block.FirstMasked(), block.keys);
    Lanes largest = Load(&softmax.largest[at]);
    for (int64_t key = 0; key < first_masked; ++key) {
      largest = nn::Larger(largest, Load(scores + key * kQueries + q));
    }
    for (int64_t key = first_masked; key < block.keys; ++key) {
      float* row = scores + key * kQueries + q;
      const Lanes masked = block.Masked(Load(row), key, q);
      Store(row, masked);
      largest = nn::Larger(largest, masked);
    }
    Lanes sum{};
    for (int64_t key = 0; key < block.keys; ++key) {
      float* row = scores + key * kQueries + q;
      const Lanes weight = nn::QuickExp(Load(row) - largest);
      Store(row, weight);
      sum += weight;
    }
    Store(&softmax.largest[at], largest);
    Store(&softmax.sum[at], sum);
  }
}

// A head's keys and values as factors.
struct Keys {
  Keys(const Job& job, const float* k, const float* v, JobMemory& memory)
      : sizes(job.sizes), count(job.run.k_count) {
    rotated = memory.Take(count * sizes.padded);
    job.LoadKeys(k, rotated);
    values = {job.Columns(v, job.run.k_begin), sizes.width, count, sizes.head_width};
  }
  nn::FloatMatrix RotatedRows() const { return {rotated, sizes.padded, count, sizes.head_width}; }

  Sizes sizes;
  int64_t count;
  float* rotated;          // (keys, padded)
  nn::FloatMatrix values;  // (keys, E)
};

// (keys, E) with the keys as lines, on the left.
Bf16Factor ByKeys(const nn::FloatMatrix& rows) {
  Bf16Factor factor(rows.rows, rows.columns);
  nn::PackByLines(rows, Bf16Side::kLeft, factor.all());
  return factor;
}
// The same with the keys as depth.
Bf16Factor Transposed(const nn::FloatMatrix& rows) {
  Bf16Factor factor(rows.columns, rows.rows);
  nn::PackByDepth(rows, Bf16Side::kLeft, factor.all());
  return factor;
}

}  // namespace

void AttendBf16(const Job& job, const ForwardData& data) {
  const nn::AmxTiles tiles;
  JobMemory memory;
  const Sizes& sizes = job.sizes;
  const Keys keys(job, data.k, data.v, memory);
  const Bf16Factor key_rows = ByKeys(keys.RotatedRows());
  const Bf16Factor values = Transposed(keys.values);
  const Mixer mixer(job, memory);
  const Bf16Factor query_columns(kQueries, sizes.head_width);
  float* queries = memory.Take(kQueries * sizes.padded);
  float* mixed = memory.Take(kQueries * sizes.padded);
  float* scores = memory.Take(RoundUp(keys.count, kAmxRows) * kQueries);
  for (const QueryRun& asked : job.run.queries) {
    const bool has_own = asked.own_begin >= 0;
    for (int64_t first = 0; first < asked.count; first += kQueries) {
      const TransposedBlock block(job, asked, first);
      job.LoadQueries(data.q, asked, first, block.rows, queries);
      nn::PackByLines({queries, sizes.padded, block.rows, sizes.head_width}, Bf16Side::kRight,
                      query_columns.all());
      ScoresOf(block, key_rows, query_columns, scores);
      ColumnSoftmax softmax;
      softmax.largest.fill(kNever);
      QueryFloats own;
      own.fill(kNever);
      for (int64_t i = 0; has_own && i < block.rows; ++i) {
        own[static_cast<size_t>(i)] = OwnScore(job, job.Columns(data.q, asked.q_begin + first + i),
                                               job.Columns(data.k, asked.own_begin + first + i));
      }
      softmax.largest = own;
      SoftmaxColumns(block, scores, softmax);
      mixer.Mix(block, values, scores, mixed);
      for (int64_t i = 0; i < block.rows; ++i) {
        const auto at = static_cast<size_t>(i);
        Softmax row{.largest = softmax.largest[at],
                    .sum = softmax.sum[at],
                    .own = std::exp(own[at] - softmax.largest[at])};
        row.sum += row.own;
        data.log_sums[block.out_row + i] = row.largest + std::log(row.sum);
        WriteMixed(job, mixed + i * sizes.padded, row,
                   has_own ? job.Columns(data.v, asked.own_begin + first + i) : nullptr,
                   job.Columns(data.out, block.out_row + i));
      }
    }
  }
}

namespace {

// What backward holds of one head of one key run.
struct BackwardMemory {
  BackwardMemory(const Job& job, const BackwardData& data)
      : keys(job, data.k, data.v, memory),
        key_rows(ByKeys(keys.RotatedRows())),
        key_columns(Transposed(keys.RotatedRows())),
        value_rows(ByKeys(keys.values)),
        mixer(job, memory),
        query_columns(kQueries, job.sizes.head_width),
        query_depth(job.sizes.head_width, kQueries),
        dout_columns(kQueries, job.sizes.head_width),
        dout_depth(job.sizes.head_width, kQueries),
        weight_rows(job.run.k_count, kQueries) {
    const int64_t count = RoundUp(job.run.k_count, kAmxRows);
    dkeys = memory.TakeZeros(count * job.sizes.padded);
    dvalues = memory.TakeZeros(count * job.sizes.padded);
    queries = memory.Take(kQueries * job.sizes.padded);
    dqueries = memory.Take(kQueries * job.sizes.padded);
    weights = memory.Take(count * kQueries);
    gradients = memory.Take(count * kQueries);
  }

  JobMemory memory;
  Keys keys;
  Bf16Factor key_rows;     // (keys, E)
  Bf16Factor key_columns;  // (E, keys)
  Bf16Factor value_rows;   // (keys, E)
  Mixer mixer;
  Bf16Factor query_columns;  // (E, queries), right.
  Bf16Factor query_depth;    // (queries, E), right.
  Bf16Factor dout_columns;   // The same of the gradients.
  Bf16Factor dout_depth;
  Bf16Factor weight_rows;  // (keys, queries)
  float* dkeys;            // (keys, padded)
  float* dvalues;          // The same.
  float* queries;          // (kQueries, padded)
  float* dqueries;         // The same.
  float* weights;          // (keys, kQueries): scores, then weights.
  float* gradients;        // The same: of the weights, then of the scores.
};

// Scores become weights, and gradients of weights become those of scores: weight * (gradient -
// row_sum).
void WeightsAndGradients(const TransposedBlock& block, const QueryFloats& log_sums,
                         const QueryFloats& row_sums, float* weights, float* gradients) {
  ForEachVector(block, [&](int64_t key, int64_t q, auto masked) {
    const auto at = static_cast<size_t>(q);
    float* weight = weights + key * kQueries + q;
    float* gradient = gradients + key * kQueries + q;
    Lanes score = Load(weight);
    if constexpr (masked) score = block.Masked(score, key, q);
    const Lanes share = nn::QuickExp(score - Load(&log_sums[at]));
    Store(weight, share);
    Store(gradient, share * (Load(gradient) - Load(&row_sums[at])));
  });
}

// out (keys, padded) += scores (keys, queries) * right (queries, E).
void AddByKeys(const TransposedBlock& block, const float* scores, const Bf16Factor& right,
               const Sizes& sizes, const Bf16Factor& rows, float* out) {
  nn::PackByLines({scores, kQueries, block.keys, block.rows}, Bf16Side::kLeft, rows.all());
  nn::MultiplyBf16({.left = rows.all(),
                    .right = right.all(),
                    .depth_tiles = 1,
                    .rows = RoundUp(block.keys, kAmxRows),
                    .columns = RoundUp(sizes.head_width, kAmxRows),
                    .out = out,
                    .out_row = sizes.padded,
                    .add = true});
}

// One block of queries: adds to dkeys, dvalues and dq.
void BlockBackwardBf16(const Job& job, const BackwardData& data, const QueryRun& asked,
                       int64_t first, const BackwardMemory& room) {
  const Sizes& sizes = job.sizes;
  const TransposedBlock block(job, asked, first);
  job.LoadQueries(data.q, asked, first, block.rows, room.queries);
  for (int64_t i = 0; data.clear_dq && i < block.rows; ++i) {
    std::fill_n(job.Columns(data.dq, asked.q_begin + first + i), sizes.head_width, 0.0F);
  }
  QueryFloats row_sums{};
  QueryFloats log_sums{};
  for (int64_t i = 0; i < block.rows; ++i) {
    const auto at = static_cast<size_t>(i);
    row_sums[at] = nn::Dot(job.Columns(data.dout, block.out_row + i),
                           job.Columns(data.out, block.out_row + i), sizes.head_width);
    log_sums[at] = data.log_sums[block.out_row + i];
    if (asked.own_begin >= 0) OwnBackward(job, data, asked, first + i, row_sums[at]);
  }
  const nn::FloatMatrix queries = {room.queries, sizes.padded, block.rows, sizes.head_width};
  const nn::FloatMatrix dout = {job.Columns(data.dout, block.out_row), sizes.width, block.rows,
                                sizes.head_width};
  nn::PackByLines(queries, Bf16Side::kRight, room.query_columns.all());
  nn::PackByDepth(queries, Bf16Side::kRight, room.query_depth.all());
  nn::PackByLines(dout, Bf16Side::kRight, room.dout_columns.all());
  nn::PackByDepth(dout, Bf16Side::kRight, room.dout_depth.all());
  ScoresOf(block, room.key_rows, room.query_columns, room.weights);
  ScoresOf(block, room.value_rows, room.dout_columns, room.gradients);
  WeightsAndGradients(block, log_sums, row_sums, room.weights, room.gradients);
  AddByKeys(block, room.weights, room.dout_depth, sizes, room.weight_rows, room.dvalues);
  AddByKeys(block, room.gradients, room.query_depth, sizes, room.weight_rows, room.dkeys);
  room.mixer.Mix(block, room.key_columns, room.gradients, room.dqueries);
  for (int64_t i = 0; i < block.rows; ++i) {
    float* rotated = room.queries;  // Free by now: one row of it.
    RotateRow(room.dqueries + i * sizes.padded, job.angles,
              job.plan.position[static_cast<size_t>(block.out_row + i)], sizes, sizes.scale,
              Direction::kBackward, rotated);
    float* to = job.Columns(data.dq, asked.q_begin + first + i);
    for (int64_t e = 0; e < sizes.head_width; ++e) to[e] += rotated[e];
  }
}

}  // namespace

void AttendBackwardBf16(const Job& job, const BackwardData& data) {
  const nn::AmxTiles tiles;
  const BackwardMemory room(job, data);
  for (const QueryRun& asked : job.run.queries) {
    for (int64_t first = 0; first < asked.count; first += kQueries) {
      BlockBackwardBf16(job, data, asked, first, room);
    }
  }
  const Sizes& sizes = job.sizes;
  for (int64_t i = 0; i < job.run.k_count; ++i) {
    RotateRow(room.dkeys + i * sizes.padded, job.angles, job.KeyPosition(i), sizes, 1,
              Direction::kBackward, job.Columns(data.dk, job.run.k_begin + i));
    std::copy_n(room.dvalues + i * sizes.padded, sizes.head_width,
                job.Columns(data.dv, job.run.k_begin + i));
  }
}

}  // namespace kibitz::learn
