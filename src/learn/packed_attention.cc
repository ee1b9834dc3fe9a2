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
#include "nn/kernels/cached_gemm.h"
#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::Dot;
using nn::Exp;
using nn::Gemm;
using nn::GemmUpTo;
using nn::GemmVectorRows;
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

// Queries whose scores are in memory at one time.
constexpr int64_t kQueryRows = 48;
static_assert(kQueryRows % kRowsOfTile == 0);

// (positions, E / 2) each -> (2, positions, E)
Tensor AnglesOf(const RotaryTable& rotary) {
  return torch::stack({torch::stack({rotary.cosine, rotary.cosine}, -1).flatten(-2),
                       torch::stack({-rotary.sine, rotary.sine}, -1).flatten(-2)});
}

// Rows (count, padded) as panels of kTileColumns rows, each panel (padded, kTileColumns): what a
// tile multiplies with. The last panel is filled up with zeros.
void MakePanels(const float* rows, int64_t count, const Sizes& sizes, float* panels) {
  for (int64_t first = 0; first < count; first += kTileColumns) {
    float* panel = panels + first * sizes.padded;
    for (int64_t j = 0; j < kTileColumns; ++j) {
      const bool there = first + j < count;
      for (int64_t e = 0; e < sizes.padded; ++e) {
        panel[e * kTileColumns + j] = there ? rows[(first + j) * sizes.padded + e] : 0.0F;
      }
    }
  }
}

// Neighbouring queries with their products against all keys that the last of them sees.
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

// GemmUpTo for the first half of a panel's columns.
template <int64_t kMost>
[[gnu::always_inline]] inline void HalfTile(const Gemm& gemm) {
  if (kMost == 1 || gemm.rows >= kMost) return GemmVectorRows<kMost>(gemm);
  if constexpr (kMost > 1) HalfTile<kMost - 1>(gemm);
}

// scores (rows, keys) = a (rows, padded) * panels^T.
void MultiplyByPanels(const QueryBlock& block, const float* a, const float* panels,
                      const Sizes& sizes, float* scores, int64_t stride) {
  for (int64_t key = 0; key < block.Keys(block.rows - 1); key += kTileColumns) {
    for (int64_t row = 0; row < block.rows; row += kRowsOfTile) {
      if (key >= block.Keys(row)) continue;
      const Gemm tile = {.a = {.data = a + row * sizes.padded, .row = sizes.padded},
                         .b = panels + key * sizes.padded,
                         .b_row = kTileColumns,
                         .c = scores + row * stride + key,
                         .c_row = stride,
                         .rows = block.Rows(row),
                         .depth = sizes.head_width};
      // Never behind the tile's own keys, where backward keeps zeros.
      block.Keys(row) - key == kLanes ? HalfTile<kRowsOfTile>(tile) : GemmUpTo<kRowsOfTile>(tile);
    }
  }
}

// out (rows, padded) = weights (rows, keys) * values (keys, padded).
void MixValues(const QueryBlock& block, const float* weights, int64_t stride, const float* values,
               const Sizes& sizes, float* out) {
  for (int64_t e = 0; e < sizes.padded; e += kTileColumns) {
    for (int64_t row = 0; row < block.rows; row += kRowsOfTile) {
      GemmUpTo<kRowsOfTile>({.a = {.data = weights + row * stride, .row = stride},
                             .b = values + e,
                             .b_row = sizes.padded,
                             .c = out + row * sizes.padded + e,
                             .c_row = sizes.padded,
                             .rows = block.Rows(row),
                             .depth = block.Seen(row)});
    }
  }
}

// out (keys, padded) += weights^T (keys, rows) * a (rows, padded).
void AddTransposed(const QueryBlock& block, const float* weights, int64_t stride, const float* a,
                   const Sizes& sizes, int64_t keys, float* out) {
  for (int64_t key = 0; key < keys; key += kRowsOfTile) {
    // The first tile of queries that sees any of these keys.
    int64_t first = 0;
    while (first < block.rows && block.Keys(first) <= key) first += kRowsOfTile;
    if (first >= block.rows) break;
    for (int64_t e = 0; e < sizes.padded; e += kTileColumns) {
      GemmUpTo<kRowsOfTile>(
          {.a = {.data = weights + first * stride + key, .row = 1, .column = stride},
           .b = a + first * sizes.padded + e,
           .b_row = sizes.padded,
           .c = out + key * sizes.padded + e,
           .c_row = sizes.padded,
           .rows = std::min(kRowsOfTile, keys - key),
           .depth = block.rows - first,
           .add = true});
    }
  }
}

// Scores become e^(score - shift) where seen and 0 behind; returns their sum.
float Exponentiate(float* row, int64_t seen, int64_t keys, float shift) {
  std::fill(row + seen, row + keys, -std::numeric_limits<float>::infinity());
  Lanes sum{};
  for (int64_t i = 0; i < keys; i += kLanes) {
    const Lanes weight = Exp(Load(row + i) - shift);
    Store(row + i, weight);
    sum += weight;
  }
  return Sum(sum);
}

// The scores of keys that query i of the block does not see.
void Hide(const QueryBlock& block, int64_t i, float* row) {
  if (block.hidden == nullptr) return;
  std::fill(row + block.hidden[i].begin, row + block.hidden[i].end,
            -std::numeric_limits<float>::infinity());
}

float LargestSeen(const float* row, int64_t seen) {
  Lanes largest = Spread(-std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= seen; i += kLanes) largest = Larger(largest, Load(row + i));
  float result = -std::numeric_limits<float>::infinity();
  for (int64_t lane = 0; lane < kLanes; ++lane) result = std::max(result, largest[lane]);
  for (; i < seen; ++i) result = std::max(result, row[i]);
  return result;
}

QueryBlock BlockAt(const Job& job, const QueryRun& queries, int64_t first) {
  const int64_t row = queries.out_begin + first;
  return {std::min(kQueryRows, queries.count - first), job.plan.seen.data() + row,
          job.plan.hidden.empty() ? nullptr : job.plan.hidden.data() + row};
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

Softmax SoftmaxOf(const Job& job, const QueryBlock& block, int64_t i, float own_score,
                  float* scores) {
  float* row = scores + i * job.stride;
  Hide(block, i, row);
  Softmax result;
  result.largest = std::max(LargestSeen(row, block.seen[i]), own_score);
  result.own = std::exp(own_score - result.largest);
  const int64_t tile = i / kRowsOfTile * kRowsOfTile;
  result.sum = Exponentiate(row, block.seen[i], block.Keys(tile), result.largest) + result.own;
  return result;
}

void Attend(const Job& job, const ForwardData& data) {
  JobMemory memory;
  const Sizes& sizes = job.sizes;
  const int64_t keys = RoundUp(job.run.k_count, kTileColumns);
  float* key_rows = memory.Take(keys * sizes.padded);
  float* panels = memory.Take(keys * sizes.padded);
  float* values = memory.TakeZeros(keys * sizes.padded);
  float* queries = memory.Take(kQueryRows * sizes.padded);
  float* mixed = memory.Take(kQueryRows * sizes.padded);
  float* scores = memory.Take(kQueryRows * job.stride);
  job.LoadKeys(data.k, key_rows);
  MakePanels(key_rows, job.run.k_count, sizes, panels);
  job.LoadValues(data.v, values);
  for (const QueryRun& asked : job.run.queries) {
    const bool has_own = asked.own_begin >= 0;
    for (int64_t first = 0; first < asked.count; first += kQueryRows) {
      const QueryBlock block = BlockAt(job, asked, first);
      job.LoadQueries(data.q, asked, first, block.rows, queries);
      MultiplyByPanels(block, queries, panels, sizes, scores, job.stride);
      Softmax softmax[kQueryRows];
      for (int64_t i = 0; i < block.rows; ++i) {
        float own = -std::numeric_limits<float>::infinity();
        if (has_own) {
          own = OwnScore(job, job.Columns(data.q, asked.q_begin + first + i),
                         job.Columns(data.k, asked.own_begin + first + i));
        }
        softmax[i] = SoftmaxOf(job, block, i, own, scores);
        data.log_sums[asked.out_begin + first + i] = softmax[i].largest + std::log(softmax[i].sum);
      }
      MixValues(block, scores, job.stride, values, sizes, mixed);
      for (int64_t i = 0; i < block.rows; ++i) {
        WriteMixed(job, mixed + i * sizes.padded, softmax[i],
                   has_own ? job.Columns(data.v, asked.own_begin + first + i) : nullptr,
                   job.Columns(data.out, asked.out_begin + first + i));
      }
    }
  }
}

// dscore = weight * (dweight - row_sum), in place of dweight; row_sum is that of dout * out over
// the row.
void ScoreGradients(const QueryBlock& block, const float* weights, int64_t stride,
                    const float* row_sums, float* gradients) {
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t keys = block.Keys(i / kRowsOfTile * kRowsOfTile);
    const float* weight = weights + i * stride;
    float* gradient = gradients + i * stride;
    for (int64_t j = 0; j < keys; j += kLanes) {
      Store(gradient + j, Load(weight + j) * (Load(gradient + j) - row_sums[i]));
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
  float* weights;       // (kQueryRows, stride)
  float* gradients;     // The same: of the weights, then of the scores.

  BackwardRoom(const Job& job, const BackwardData& data, JobMemory& memory) {
    const int64_t size = RoundUp(job.run.k_count, kTileColumns) * job.sizes.padded;
    const int64_t block = kQueryRows * job.sizes.padded;
    key_rows = memory.TakeZeros(size);
    key_panels = memory.Take(size);
    value_panels = memory.Take(size);
    dkeys = memory.TakeZeros(size);
    dvalues = memory.TakeZeros(size);
    queries = memory.Take(block);
    dqueries = memory.Take(block);
    dmixed = memory.Take(block);
    weights = memory.Take(kQueryRows * job.stride);
    gradients = memory.Take(kQueryRows * job.stride);
    job.LoadKeys(data.k, key_rows);
    MakePanels(key_rows, job.run.k_count, job.sizes, key_panels);
    float* values = memory.Take(size);
    job.LoadValues(data.v, values);
    MakePanels(values, job.run.k_count, job.sizes, value_panels);
  }
};

// The weights of a block's queries again, from their scores and the sums that forward kept.
// Queries of a later tile see more keys: AddTransposed reads zeros behind a row's own.
void RecomputeWeights(const Job& job, const BackwardData& data, const QueryBlock& block,
                      int64_t out_row, const BackwardRoom& room) {
  MultiplyByPanels(block, room.queries, room.key_panels, job.sizes, room.weights, job.stride);
  const int64_t behind = block.Keys(block.rows - 1) + kRowsOfTile;
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t own = block.Keys(i / kRowsOfTile * kRowsOfTile);
    float* weight = room.weights + i * job.stride;
    float* gradient = room.gradients + i * job.stride;
    Hide(block, i, weight);
    Exponentiate(weight, block.seen[i], own, data.log_sums[out_row + i]);
    std::fill(weight + own, weight + behind, 0.0F);
    std::fill(gradient + own, gradient + behind, 0.0F);
  }
}

// One block of queries: adds to dkeys, dvalues and dq.
void BlockBackward(const Job& job, const BackwardData& data, const QueryRun& asked, int64_t first,
                   const BackwardRoom& room) {
  const Sizes& sizes = job.sizes;
  const int64_t count = job.run.k_count;
  const QueryBlock block = BlockAt(job, asked, first);
  const int64_t out_row = asked.out_begin + first;
  job.LoadQueries(data.q, asked, first, block.rows, room.queries);
  float row_sums[kQueryRows];
  for (int64_t i = 0; i < block.rows; ++i) {
    const float* dout = job.Columns(data.dout, out_row + i);
    const float* out = job.Columns(data.out, out_row + i);
    CopyRow(dout, sizes, room.dmixed + i * sizes.padded);
    row_sums[i] = Dot(dout, out, sizes.head_width);
    if (asked.own_begin >= 0) OwnBackward(job, data, asked, first + i, row_sums[i]);
  }
  RecomputeWeights(job, data, block, out_row, room);
  MultiplyByPanels(block, room.dmixed, room.value_panels, sizes, room.gradients, job.stride);
  AddTransposed(block, room.weights, job.stride, room.dmixed, sizes, count, room.dvalues);
  ScoreGradients(block, room.weights, job.stride, row_sums, room.gradients);
  AddTransposed(block, room.gradients, job.stride, room.queries, sizes, count, room.dkeys);
  MixValues(block, room.gradients, job.stride, room.key_rows, sizes, room.dqueries);
  for (int64_t i = 0; i < block.rows; ++i) {
    float* rotated = room.dmixed;  // Free by now: one row of it.
    RotateRow(room.dqueries + i * sizes.padded, job.angles,
              job.plan.position[static_cast<size_t>(out_row + i)], sizes, sizes.scale,
              Direction::kBackward, rotated);
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
    RotateRow(room.dkeys + i * sizes.padded, job.angles, job.KeyPosition(i), sizes, 1,
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

// What rows of a head are padded to.
int64_t PaddingOf(bool rounded) { return rounded ? kBf16Padding : kTileColumns; }

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
    const Sizes sizes = SizesOf(q.size(1), heads, PaddingOf(rounded));
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
    const Sizes sizes = SizesOf(q.size(1), heads, PaddingOf(rounded));
    const Angles angles = {saved[3][0].data_ptr<float>(), saved[3][1].data_ptr<float>()};
    const Tensor dout = gradients[0].contiguous();
    const bool clear_dq = rounded && EachQueryOnce(plan, q.size(0));
    const bool each_key = rounded && EachKeyOnce(plan, saved[1].size(0));
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
