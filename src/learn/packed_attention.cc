#include "learn/packed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "learn/attention_job.h"
#include "learn/bf16_attention.h"
#include "learn/parallel.h"
#include "learn/precision.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/bf16_gemm.h"
#include "nn/kernels/cached_gemm.h"
#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::Dot;
using nn::Exp2;
using nn::GemmUpTo;
using nn::kLanes;
using nn::kTileColumns;
using nn::Lanes;
using nn::Larger;
using nn::Load;
using nn::RoundUp;
using nn::Spread;
using nn::Store;
using nn::Sum;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of a register tile: of queries, or of keys.
constexpr int64_t kRowsOfTile = nn::kCachedRows;

// Queries and keys whose weights are in memory at one time in backward: with their gradients they
// are in the L1 cache. Forward has the weights of one tile's queries with all keys.
constexpr int64_t kQueryRows = 96;
constexpr int64_t kKeyColumns = 32;
static_assert(kQueryRows % kRowsOfTile == 0 && kKeyColumns % kTileColumns == 0);

// Weights are powers of 2: queries are loaded with this factor.
constexpr float kLog2OfE = 1.44269504088896341F;
constexpr float kLogOf2 = 0.693147180559945309F;

// The score of a key that is not seen: its weight is about 0. Finite, as Exp2 wants it.
constexpr float kNever = -1e6F;

// (positions, E / 2) each -> (2, positions, E)
Tensor AnglesOf(const RotaryTable& rotary) {
  return torch::stack({torch::stack({rotary.cosine, rotary.cosine}, -1).flatten(-2),
                       torch::stack({-rotary.sine, rotary.sine}, -1).flatten(-2)});
}

// Rows (count, padded) as panels of kTileColumns rows, each panel (padded, kTileColumns): what a
// tile multiplies with. Rows are there to the end of the last panel.
void MakePanels(const float* rows, int64_t count, const Sizes& sizes, float* panels) {
  for (int64_t first = 0; first < count; first += kTileColumns) {
    nn::TransposeFloats({rows + first * sizes.padded, sizes.padded, kTileColumns, sizes.padded},
                        panels + first * sizes.padded, kTileColumns);
  }
}

// Neighbouring queries.
struct QueryBlock {
  int64_t rows = 0;
  const int32_t* seen = nullptr;       // rows
  const HiddenKeys* hidden = nullptr;  // rows, or none.
  // Keys seen by any of the tile of queries that starts at `row` ...
  int64_t Seen(int64_t row) const { return seen[std::min(row + kRowsOfTile, rows) - 1]; }
  // ... in whole vectors.
  int64_t Keys(int64_t row) const { return RoundUp(Seen(row), kLanes); }
  int64_t Rows(int64_t row) const { return std::min(kRowsOfTile, rows - row); }
};

QueryBlock BlockAt(const Job& job, const QueryRun& queries, int64_t first, int64_t most) {
  const int64_t row = queries.out_begin + first;
  return {std::min(most, queries.count - first), job.plan.seen.data() + row,
          job.plan.hidden.empty() ? nullptr : job.plan.hidden.data() + row};
}

// A few rows (rows, padded) and the panels they are multiplied by.
struct PanelProduct {
  const float* a = nullptr;
  const float* panels = nullptr;
  int64_t rows = 0;
  int64_t padded = 0;
  int64_t depth = 0;
};

template <int64_t kRows, typename Finish>
[[gnu::always_inline]] inline void MultiplyPanel(const PanelProduct& product, const float* panel,
                                                 const Finish& finish) {
  nn::TileSums<kRows> sums;
  const float* a = product.a;
#pragma GCC unroll 4
  for (int64_t k = 0; k < product.depth; ++k, ++a, panel += kTileColumns) {
    sums.Add(a, product.padded, Load(panel), Load(panel + kLanes));
  }
  sums.ForEach(finish);
}

// Of the panel's first vector of keys alone.
template <int64_t kRows, typename Finish>
[[gnu::always_inline]] inline void MultiplyHalf(const PanelProduct& product, const float* panel,
                                                const Finish& finish) {
  nn::VectorSums<kRows> sums;
  const float* a = product.a;
#pragma GCC unroll 4
  for (int64_t k = 0; k < product.depth; ++k, ++a, panel += kTileColumns) {
    sums.Add(a, product.padded, Load(panel));
  }
  sums.ForEach(finish);
}

// Calls finish(row, key, products) for every vector of the product of at most kMost rows with keys
// [begin, end), which are whole vectors; also for a few rows behind the last.
template <int64_t kMost, typename Finish>
[[gnu::always_inline]] inline void MultiplyByPanels(const PanelProduct& product, int64_t begin,
                                                    int64_t end, const Finish& finish) {
  if constexpr (kMost > 1) {
    if (product.rows <= kMost / 2) {
      return MultiplyByPanels<kMost / 2>(product, begin, end, finish);
    }
  }
  for (int64_t key = begin; key < end; key += kTileColumns) {
    const float* panel = product.panels + key * product.padded;
    const auto finish_panel = [&](int64_t row, int64_t column, Lanes sums)
        __attribute__((always_inline)) {
      finish(row, key + column, sums);
    };
    end - key < kTileColumns ? MultiplyHalf<kMost>(product, panel, finish_panel)
                             : MultiplyPanel<kMost>(product, panel, finish_panel);
  }
}

// Calls body(job, head) for every head of every key run.
template <typename Body>
void ForEachJob(const AttentionPlan& plan, const Sizes& sizes, const Angles& angles, int64_t heads,
                const Body& body) {
  const auto runs = static_cast<int64_t>(plan.keys.size());
  ForEachTask(runs * heads, [&](int64_t task) {
    const KeyRun& run = plan.keys[static_cast<size_t>(task / heads)];
    const int64_t head = task % heads;
    const int64_t stride = RoundUp(run.k_count, kTileColumns) + kTileColumns;
    body(Job{plan, run, sizes, angles, head * sizes.head_width, stride}, head);
  });
}

// Scores become 2^(score - shift) where seen and about 0 behind; returns their sum.
float Exponentiate(float* row, int64_t seen, int64_t keys, float shift) {
  std::fill(row + seen, row + keys, kNever);
  Lanes sum{};
  for (int64_t i = 0; i < keys; i += kLanes) {
    const Lanes weight = Exp2(Load(row + i) - shift);
    Store(row + i, weight);
    sum += weight;
  }
  return Sum(sum);
}

float LargestSeen(const float* row, int64_t seen) {
  Lanes largest = Spread(kNever);
  Lanes others = largest;
  int64_t i = 0;
  for (; i + 2 * kLanes <= seen; i += 2 * kLanes) {
    largest = Larger(largest, Load(row + i));
    others = Larger(others, Load(row + i + kLanes));
  }
  float result = nn::Largest(Larger(largest, others))[0];
  for (; i < seen; ++i) result = std::max(result, row[i]);
  return result;
}

// Of query i of a tile; all in powers of 2.
Softmax SoftmaxOf(const QueryBlock& block, int64_t i, float own_score, float* row) {
  if (block.hidden != nullptr) {
    std::fill(row + block.hidden[i].begin, row + block.hidden[i].end, kNever);
  }
  Softmax result;
  result.largest = std::max(LargestSeen(row, block.seen[i]), own_score);
  result.own = std::exp2(own_score - result.largest);
  result.sum = Exponentiate(row, block.seen[i], block.Keys(0), result.largest) + result.own;
  return result;
}

// What forward holds of one head of one key run. Keys are padded to whole panels.
struct ForwardRoom {
  float* panels;   // Keys as panels.
  float* values;   // (keys, padded)
  float* queries;  // (kRowsOfTile, padded)
  float* mixed;    // The same.
  float* weights;  // (kRowsOfTile, stride)

  ForwardRoom(const Job& job, const ForwardData& data, JobMemory& memory) {
    const int64_t size = RoundUp(job.run.k_count, kTileColumns) * job.sizes.padded;
    float* key_rows = memory.TakeZeros(size);
    panels = memory.Take(size);
    values = memory.TakeZeros(size);
    queries = memory.TakeZeros(kRowsOfTile * job.sizes.padded);
    mixed = memory.Take(kRowsOfTile * job.sizes.padded);
    weights = memory.Take(kRowsOfTile * job.stride);
    job.LoadKeys(data.k, key_rows);
    MakePanels(key_rows, job.run.k_count, job.sizes, panels);
    job.LoadValues(data.v, values);
  }
};

// The weights of a tile's queries, not yet divided by their sums.
void TileWeights(const Job& job, const ForwardData& data, const QueryRun& asked, int64_t first,
                 const QueryBlock& block, const ForwardRoom& room, Softmax* softmax) {
  const Sizes& sizes = job.sizes;
  job.LoadQueries(data.q, asked, first, block.rows, room.queries);
  MultiplyByPanels<kRowsOfTile>(
      {room.queries, room.panels, block.rows, sizes.padded, sizes.head_width}, 0,
      block.Keys(0), [&](int64_t row, int64_t key, Lanes scores) __attribute__((always_inline)) {
        Store(room.weights + row * job.stride + key, scores);
      });
  for (int64_t i = 0; i < block.rows; ++i) {
    float own = -std::numeric_limits<float>::infinity();
    if (asked.own_begin >= 0) {
      own = kLog2OfE * OwnScore(job, job.Columns(data.q, asked.q_begin + first + i),
                                job.Columns(data.k, asked.own_begin + first + i));
    }
    softmax[i] = SoftmaxOf(block, i, own, room.weights + i * job.stride);
    data.log_sums[asked.out_begin + first + i] =
        softmax[i].largest * kLogOf2 + std::log(softmax[i].sum);
  }
}

// Asks for the rows of the block of queries after the one at `first`.
void PrefetchNext(const Job& job, const QueryRun& asked, int64_t first, int64_t most,
                  const float* data, int64_t data_begin) {
  const int64_t begin = first + most;
  const int64_t end = std::min(begin + most, asked.count);
  job.Prefetch(data, data_begin + begin, data_begin + end);
}

// One tile of queries.
void AttendTile(const Job& job, const ForwardData& data, const QueryRun& asked, int64_t first,
                const ForwardRoom& room) {
  const Sizes& sizes = job.sizes;
  const QueryBlock block = BlockAt(job, asked, first, kRowsOfTile);
  PrefetchNext(job, asked, first, kRowsOfTile, data.q, asked.q_begin);
  job.Prefetch(data.out, asked.out_begin + first, asked.out_begin + first + block.rows);
  Softmax softmax[kRowsOfTile];
  TileWeights(job, data, asked, first, block, room, softmax);
  for (int64_t e = 0; e < sizes.padded; e += kTileColumns) {
    GemmUpTo<kRowsOfTile>({.a = {.data = room.weights, .row = job.stride},
                           .b = room.values + e,
                           .b_row = sizes.padded,
                           .c = room.mixed + e,
                           .c_row = sizes.padded,
                           .rows = block.rows,
                           .depth = block.Seen(0)});
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    WriteMixed(job, room.mixed + i * sizes.padded, softmax[i],
               asked.own_begin >= 0 ? job.Columns(data.v, asked.own_begin + first + i) : nullptr,
               job.Columns(data.out, asked.out_begin + first + i));
  }
}

void Attend(const Job& job, const ForwardData& data) {
  JobMemory memory;
  const ForwardRoom room(job, data, memory);
  for (const QueryRun& asked : job.run.queries) {
    for (int64_t first = 0; first < asked.count; first += kRowsOfTile) {
      AttendTile(job, data, asked, first, room);
    }
  }
}

// What backward holds of one head of one key run. Keys are padded to whole panels.
struct BackwardRoom {
  float* key_rows;      // (keys, padded)
  float* key_panels;    // The same as panels.
  float* value_panels;  // (keys, padded) as panels.
  float* dkeys;         // (keys, padded)
  float* dvalues;       // The same.
  float* queries;       // (kQueryRows, padded)
  float* dqueries;      // The same.
  float* dmixed;        // The same: gradient of the mixed values.
  float* weights;       // (kQueryRows, kKeyColumns)
  float* gradients;     // The same: of the scores.

  BackwardRoom(const Job& job, const BackwardData& data, JobMemory& memory) {
    const int64_t size = RoundUp(job.run.k_count, kTileColumns) * job.sizes.padded;
    const int64_t block = kQueryRows * job.sizes.padded;
    key_rows = memory.TakeZeros(size);
    key_panels = memory.Take(size);
    value_panels = memory.Take(size);
    dkeys = memory.TakeZeros(size);
    dvalues = memory.Take(size);
    queries = memory.TakeZeros(block);
    dqueries = memory.Take(block);
    dmixed = memory.TakeZeros(block);
    weights = memory.Take(kQueryRows * kKeyColumns);
    gradients = memory.Take(kQueryRows * kKeyColumns);
    job.LoadKeys(data.k, key_rows);
    MakePanels(key_rows, job.run.k_count, job.sizes, key_panels);
    std::fill_n(dvalues, size, 0.0F);
    job.LoadValues(data.v, dvalues);  // On the way to panels.
    MakePanels(dvalues, job.run.k_count, job.sizes, value_panels);
    std::fill_n(dvalues, size, 0.0F);
  }
};

// A block of queries in backward.
struct BackwardBlock {
  QueryBlock queries;
  float log_sums[kQueryRows] = {};  // Of base 2.
  float row_sums[kQueryRows] = {};  // Of dout * out.
};

// Clears the weights of keys [begin, end) that query i does not see.
void ClearUnseen(const QueryBlock& block, int64_t i, int64_t begin, int64_t end, float* row) {
  const auto clear = [&](int64_t from, int64_t to) {
    from = std::max(from, begin);
    to = std::min(to, end);
    if (from < to) std::fill(row + from - begin, row + to - begin, 0.0F);
  };
  clear(block.seen[i], end);
  if (block.hidden != nullptr) clear(block.hidden[i].begin, block.hidden[i].end);
}

// The weights of the tile of queries from `row` on for keys [begin, end) again, from their scores
// and the sums that forward kept, and the scores' gradients: weight * (dweight - row_sum).
void TileGradients(const BackwardBlock& block, int64_t row, int64_t begin, int64_t end,
                   const Sizes& sizes, const BackwardRoom& room) {
  const QueryBlock& queries = block.queries;
  const int64_t own_end = std::min(queries.Keys(row), end);
  if (own_end <= begin) return;
  float* const weights = room.weights + row * kKeyColumns;
  float* const gradients = room.gradients + row * kKeyColumns;
  const int64_t rows = queries.Rows(row);
  MultiplyByPanels<kRowsOfTile>(
      {room.queries + row * sizes.padded, room.key_panels, rows, sizes.padded, sizes.head_width},
      begin, own_end, [&](int64_t i, int64_t key, Lanes scores) __attribute__((always_inline)) {
        Store(weights + i * kKeyColumns + key - begin, Exp2(scores - block.log_sums[row + i]));
      });
  for (int64_t i = 0; i < rows; ++i) {
    ClearUnseen(queries, row + i, begin, end, weights + i * kKeyColumns);
    std::fill(gradients + i * kKeyColumns + own_end - begin,
              gradients + i * kKeyColumns + end - begin, 0.0F);
  }
  MultiplyByPanels<kRowsOfTile>(
      {room.dmixed + row * sizes.padded, room.value_panels, rows, sizes.padded, sizes.head_width},
      begin, own_end, [&](int64_t i, int64_t key, Lanes dweights) __attribute__((always_inline)) {
        const int64_t at = i * kKeyColumns + key - begin;
        Store(gradients + at, Load(weights + at) * (dweights - block.row_sums[row + i]));
      });
}

// out (keys, padded) += weights^T (keys, rows) * a (rows, padded), for keys [begin, end). Queries
// of a later tile see more keys: rows of weights have zeros behind their own keys.
void AddTransposed(const QueryBlock& block, const float* weights, const float* a,
                   const Sizes& sizes, int64_t begin, int64_t end, float* out) {
  int64_t first = 0;  // The first tile of queries that sees any of these keys.
  for (int64_t key = begin; key < end; key += kRowsOfTile) {
    while (block.Keys(first) <= key) first += kRowsOfTile;
    for (int64_t e = 0; e < sizes.padded; e += kTileColumns) {
      GemmUpTo<kRowsOfTile>({.a = {.data = weights + first * kKeyColumns + key - begin,
                                   .row = 1,
                                   .column = kKeyColumns},
                             .b = a + first * sizes.padded + e,
                             .b_row = sizes.padded,
                             .c = out + key * sizes.padded + e,
                             .c_row = sizes.padded,
                             .rows = std::min(kRowsOfTile, end - key),
                             .depth = block.rows - first,
                             .add = true});
    }
  }
}

// dqueries (rows, padded) += gradients (rows, keys) * keys (keys, padded), for keys from `begin`.
void AddToQueries(const QueryBlock& block, int64_t begin, const Sizes& sizes,
                  const BackwardRoom& room) {
  for (int64_t row = 0; row < block.rows; row += kRowsOfTile) {
    const int64_t depth = std::min(kKeyColumns, block.Seen(row) - begin);
    if (depth <= 0) continue;
    for (int64_t e = 0; e < sizes.padded; e += kTileColumns) {
      GemmUpTo<kRowsOfTile>({.a = {.data = room.gradients + row * kKeyColumns, .row = kKeyColumns},
                             .b = room.key_rows + begin * sizes.padded + e,
                             .b_row = sizes.padded,
                             .c = room.dqueries + row * sizes.padded + e,
                             .c_row = sizes.padded,
                             .rows = block.Rows(row),
                             .depth = depth,
                             .add = begin > 0});
    }
  }
}

BackwardBlock LoadBlock(const Job& job, const BackwardData& data, const QueryRun& asked,
                        int64_t first, const BackwardRoom& room) {
  const Sizes& sizes = job.sizes;
  BackwardBlock block = {BlockAt(job, asked, first, kQueryRows)};
  const int64_t rows = block.queries.rows;
  job.LoadQueries(data.q, asked, first, rows, room.queries);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t out_row = asked.out_begin + first + i;
    const float* dout = job.Columns(data.dout, out_row);
    CopyRow(dout, sizes, room.dmixed + i * sizes.padded);
    if (data.clear_dq) {
      std::fill_n(job.Columns(data.dq, asked.q_begin + first + i), sizes.head_width, 0.0F);
    }
    block.log_sums[i] = data.log_sums[out_row] * kLog2OfE;
    block.row_sums[i] = Dot(dout, job.Columns(data.out, out_row), sizes.head_width);
    if (asked.own_begin >= 0) OwnBackward(job, data, asked, first + i, block.row_sums[i]);
  }
  return block;
}

// One block of queries: adds to dkeys, dvalues and dq.
void BlockBackward(const Job& job, const BackwardData& data, const QueryRun& asked, int64_t first,
                   const BackwardRoom& room) {
  const Sizes& sizes = job.sizes;
  const BackwardBlock block = LoadBlock(job, data, asked, first, room);
  const QueryBlock& queries = block.queries;
  const int64_t keys = queries.Keys(queries.rows - 1);
  PrefetchNext(job, asked, first, kQueryRows, data.q, asked.q_begin);
  PrefetchNext(job, asked, first, kQueryRows, data.out, asked.out_begin);
  PrefetchNext(job, asked, first, kQueryRows, data.dout, asked.out_begin);
  job.Prefetch(data.dq, asked.q_begin + first, asked.q_begin + first + queries.rows);
  for (int64_t begin = 0; begin < keys; begin += kKeyColumns) {
    const int64_t end = std::min(begin + kKeyColumns, keys);
    for (int64_t row = 0; row < queries.rows; row += kRowsOfTile) {
      TileGradients(block, row, begin, end, sizes, room);
    }
    AddTransposed(queries, room.weights, room.dmixed, sizes, begin, end, room.dvalues);
    AddTransposed(queries, room.gradients, room.queries, sizes, begin, end, room.dkeys);
    AddToQueries(queries, begin, sizes, room);
  }
  for (int64_t i = 0; i < queries.rows; ++i) {
    float* rotated = room.dmixed;  // Free by now: one row of it.
    RotateRow(room.dqueries + i * sizes.padded, job.angles,
              job.plan.position[static_cast<size_t>(asked.out_begin + first + i)], sizes,
              sizes.scale, Direction::kBackward, rotated);
    float* to = job.Columns(data.dq, asked.q_begin + first + i);
    for (int64_t e = 0; e < sizes.head_width; ++e) to[e] += rotated[e];
  }
}

void AttendBackward(const Job& job, const BackwardData& data) {
  JobMemory memory;
  const BackwardRoom room(job, data, memory);
  for (const QueryRun& asked : job.run.queries) {
    for (int64_t first = 0; first < asked.count; first += kQueryRows) {
      BlockBackward(job, data, asked, first, room);
    }
  }
  const Sizes& sizes = job.sizes;
  for (int64_t i = 0; i < job.run.k_count; ++i) {
    job.PrefetchKey(data.dk, i);
    job.PrefetchKey(data.dv, i);
    // The queries of these products had the factor of powers of 2.
    RotateRow(room.dkeys + i * sizes.padded, job.angles, job.KeyPosition(i), sizes, kLogOf2,
              Direction::kBackward, job.Columns(data.dk, job.run.k_begin + i));
    std::copy_n(room.dvalues + i * sizes.padded, sizes.head_width,
                job.Columns(data.dv, job.run.k_begin + i));
  }
}

// Carries the plan from forward to backward.
struct PlanHolder : torch::CustomClassHolder {
  explicit PlanHolder(std::shared_ptr<const AttentionPlan> plan) : plan(std::move(plan)) {}
  std::shared_ptr<const AttentionPlan> plan;
};

Sizes HeadSizes(const Tensor& q, int64_t heads, bool rounded) {
  return rounded ? SizesOf(q.size(1), heads, kBf16Padding, 1)
                 : SizesOf(q.size(1), heads, kTileColumns, kLog2OfE);
}

// Counts the rows that runs write.
class Coverage {
 public:
  explicit Coverage(int64_t rows) : times_(static_cast<size_t>(rows)) {}
  void Add(int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count; ++i) ++times_[static_cast<size_t>(i)];
  }
  bool EachOnce() const {
    return std::all_of(times_.begin(), times_.end(), [](int32_t times) { return times == 1; });
  }

 private:
  std::vector<int32_t> times_;
};

// Every row of q belongs to one query.
bool EachQueryOnce(const AttentionPlan& plan, int64_t q_rows) {
  Coverage coverage(q_rows);
  for (const KeyRun& run : plan.keys) {
    for (const QueryRun& queries : run.queries) coverage.Add(queries.q_begin, queries.count);
  }
  return coverage.EachOnce();
}

// Every row of k is in a key run or a query's own.
bool EachKeyOnce(const AttentionPlan& plan, int64_t k_rows) {
  Coverage coverage(k_rows);
  for (const KeyRun& run : plan.keys) {
    coverage.Add(run.k_begin, run.k_count);
    for (const QueryRun& queries : run.queries) {
      if (queries.own_begin >= 0) coverage.Add(queries.own_begin, queries.count);
    }
  }
  return coverage.EachOnce();
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& angle_table, std::shared_ptr<const AttentionPlan> plan,
                        int64_t heads) {
    const auto rows = static_cast<int64_t>(plan->seen.size());
    const bool rounded = KeepPrecision(ctx) == Precision::kBfloat16;
    const Sizes sizes = HeadSizes(q, heads, rounded);
    const Angles angles = {angle_table[0].data_ptr<float>(), angle_table[1].data_ptr<float>()};
    auto out = torch::empty({rows, sizes.width}, q.options());  // (rows, D)
    auto log_sums = torch::empty({heads, rows}, q.options());   // (H, rows)
    ForEachJob(*plan, sizes, angles, heads, [&](const Job& job, int64_t head) {
      const ForwardData data = {.q = q.data_ptr<float>(),
                                .k = k.data_ptr<float>(),
                                .v = v.data_ptr<float>(),
                                .out = out.data_ptr<float>(),
                                .log_sums = log_sums.data_ptr<float>() + head * rows};
      rounded ? AttendBf16(job, data) : Attend(job, data);
    });
    ctx->save_for_backward({q, k, v, angle_table, out, log_sums});
    ctx->saved_data["plan"] =
        torch::IValue::make_capsule(c10::make_intrusive<PlanHolder>(std::move(plan)));
    ctx->saved_data["heads"] = heads;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& q = saved[0];
    const auto holder = ctx->saved_data["plan"].toCapsule();
    const AttentionPlan& plan = *static_cast<const PlanHolder&>(*holder).plan;
    const int64_t heads = ctx->saved_data["heads"].toInt();
    const bool rounded = KeptPrecision(ctx) == Precision::kBfloat16;
    const Sizes sizes = HeadSizes(q, heads, rounded);
    const Angles angles = {saved[3][0].data_ptr<float>(), saved[3][1].data_ptr<float>()};
    const Tensor dout = gradients[0].contiguous();
    const bool clear_dq = EachQueryOnce(plan, q.size(0));
    const bool each_key = EachKeyOnce(plan, saved[1].size(0));
    auto dq = clear_dq ? torch::empty_like(q) : torch::zeros_like(q);  // (rows of q, D)
    auto dk = each_key ? torch::empty_like(saved[1]) : torch::zeros_like(saved[1]);  // Rows of k.
    auto dv = each_key ? torch::empty_like(saved[2]) : torch::zeros_like(saved[2]);  // The same.
    ForEachJob(plan, sizes, angles, heads, [&](const Job& job, int64_t head) {
      const BackwardData data = {.q = q.data_ptr<float>(),
                                 .k = saved[1].data_ptr<float>(),
                                 .v = saved[2].data_ptr<float>(),
                                 .out = saved[4].data_ptr<float>(),
                                 .log_sums = saved[5].data_ptr<float>() + head * dout.size(0),
                                 .dout = dout.data_ptr<float>(),
                                 .dq = dq.data_ptr<float>(),
                                 .dk = dk.data_ptr<float>(),
                                 .dv = dv.data_ptr<float>(),
                                 .clear_dq = clear_dq};
      rounded ? AttendBackwardBf16(job, data) : AttendBackward(job, data);
    });
    return {dq, dk, dv, Tensor(), Tensor(), Tensor()};
  }
};

void CheckPlan(const AttentionPlan& plan, int64_t q_rows, int64_t k_rows, int64_t positions) {
  CHECK(plan.position.size() == plan.seen.size());
  CHECK(plan.hidden.empty() || plan.hidden.size() == plan.seen.size());
  CHECK(plan.key_position.empty() || plan.key_position.size() == static_cast<size_t>(k_rows));
  for (const KeyRun& run : plan.keys) {
    CHECK(run.k_begin >= 0 && run.k_begin + run.k_count <= k_rows && run.k_count <= positions);
    for (const QueryRun& queries : run.queries) {
      CHECK(queries.q_begin >= 0 && queries.q_begin + queries.count <= q_rows);
      CHECK(queries.out_begin >= 0 &&
            queries.out_begin + queries.count <= static_cast<int64_t>(plan.seen.size()));
      CHECK(queries.own_begin >= -1 && queries.own_begin + queries.count <= k_rows);
      int32_t before = 1;
      for (int64_t i = queries.out_begin; i < queries.out_begin + queries.count; ++i) {
        const auto row = static_cast<size_t>(i);
        CHECK(plan.seen[row] >= before && plan.seen[row] <= run.k_count);
        CHECK(plan.position[row] >= 0 && plan.position[row] < positions);
        before = plan.seen[row];
      }
    }
  }
}

}  // namespace

Tensor PackedAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                       std::shared_ptr<const AttentionPlan> plan, const RotaryTable& rotary,
                       int64_t heads) {
  for (const Tensor& tensor : {q, k, v}) {
    CHECK(tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat32);
  }
  CHECK(k.sizes() == v.sizes() && q.size(1) == k.size(1) && q.size(1) % (2 * heads) == 0);
  CheckPlan(*plan, q.size(0), k.size(0), rotary.cosine.size(0));
  return AttentionFunction::apply(q.contiguous(), k.contiguous(), v.contiguous(), AnglesOf(rotary),
                                  std::move(plan), heads);
}

}  // namespace kibitz::learn
