// One head of one sequence's keys with all queries that see them: the unit of work of
// packed_attention.h, which has the letters. In float32 (packed_attention.cc), or with products in
// bfloat16 (bf16_attention.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/check.h"
#include "learn/packed_attention.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {

struct Sizes {
  int64_t width = 0;       // D
  int64_t head_width = 0;  // E
  int64_t padded = 0;      // E rounded up to a multiple of `padding`.
  float scale = 0;         // Of the scores.
  float base = 1;          // Of loaded queries besides: log2(e) where weights are powers of 2.
};

inline Sizes SizesOf(int64_t width, int64_t heads, int64_t padding, float base) {
  const int64_t head_width = width / heads;
  return {width, head_width, nn::RoundUp(head_width, padding),
          1 / std::sqrt(static_cast<float>(head_width)), base};
}

// Rotary angles, a row for each position: cosines and sines for each of the E numbers, the sines
// negative for even ones. Then rotated x = x * cosine + (neighbour of x) * sine.
struct Angles {
  const float* cosine = nullptr;
  const float* sine = nullptr;
};

// Memory of one piece of work, aligned to cache lines.
class JobMemory {
 public:
  // Not cleared.
  float* Take(int64_t count) {
    used_.emplace_back(static_cast<float*>(std::aligned_alloc(
        nn::kCacheLine, nn::RoundUp(count * int64_t{sizeof(float)}, nn::kCacheLine))));
    CHECK(used_.back() != nullptr);
    return used_.back().get();
  }
  float* TakeZeros(int64_t count) {
    float* data = Take(count);
    std::fill_n(data, count, 0.0F);
    return data;
  }

 private:
  struct Free {
    void operator()(float* block) const { std::free(block); }
  };
  std::vector<std::unique_ptr<float[], Free>> used_;
};

// One head's columns of a row, zero-padded: (E) -> (padded).
inline void CopyRow(const float* from, const Sizes& sizes, float* to) {
  std::copy_n(from, sizes.head_width, to);
  std::fill(to + sizes.head_width, to + sizes.padded, 0.0F);
}

enum class Direction { kForward, kBackward };  // Backward rotates by the opposite angle.

// The same rotated by the angles of its position, and scaled. Leaves the padding alone.
[[gnu::always_inline]] inline void RotateRow(const float* from, const Angles& angles,
                                             int64_t position, const Sizes& sizes, float scale,
                                             Direction direction, float* to) {
  const float* cosine = angles.cosine + position * sizes.head_width;
  const float* sine = angles.sine + position * sizes.head_width;
  const float sine_scale = direction == Direction::kForward ? scale : -scale;
  int64_t i = 0;
  for (; i + nn::kLanes <= sizes.head_width; i += nn::kLanes) {
    const nn::Lanes x = nn::Load(from + i);
    nn::Store(to + i, x * (nn::Load(cosine + i) * scale) +
                          nn::SwapNeighbours(x) * (nn::Load(sine + i) * sine_scale));
  }
  for (; i < sizes.head_width; i += 2) {
    const float even = from[i];
    const float odd = from[i + 1];
    to[i] = even * cosine[i] * scale + odd * sine[i] * sine_scale;
    to[i + 1] = odd * cosine[i + 1] * scale + even * sine[i + 1] * sine_scale;
  }
}

// One head of one key run: the unit of parallel work.
struct Job {
  static constexpr int64_t kAhead = 12;
  static constexpr int64_t kLineFloats = nn::kCacheLine / int64_t{sizeof(float)};

  const AttentionPlan& plan;
  const KeyRun& run;
  Sizes sizes;
  Angles angles;
  int64_t column;  // Where the head's columns begin.
  int64_t stride;  // Of a row of scores: over the keys, so that rows do not share cache sets.

  // That rotates key i of the run.
  int64_t KeyPosition(int64_t i) const {
    return plan.key_position.empty() ? i : plan.key_position[static_cast<size_t>(run.k_begin + i)];
  }
  // The keys' rows of a tensor (rows, D), this head's columns.
  float* Columns(float* data, int64_t row) const { return data + row * sizes.width + column; }
  const float* Columns(const float* data, int64_t row) const {
    return data + row * sizes.width + column;
  }

  // Asks for rows [begin, end): a head's columns are too far apart for the processor to guess.
  void Prefetch(const float* data, int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; ++row) {
      const float* columns = Columns(data, row);
      for (int64_t e = 0; e < sizes.head_width; e += kLineFloats)
        __builtin_prefetch(columns + e, 0, 2);
    }
  }
  // While key i of the run is read or written: the row kAhead further on.
  void PrefetchKey(const float* data, int64_t i) const {
    const int64_t row = run.k_begin + i + kAhead;
    if (i + kAhead < run.k_count) Prefetch(data, row, row + 1);
  }

  void LoadKeys(const float* from, float* to) const {
    for (int64_t i = 0; i < run.k_count; ++i) {
      PrefetchKey(from, i);
      float* row = to + i * sizes.padded;
      std::fill(row + sizes.head_width, row + sizes.padded, 0.0F);
      RotateRow(Columns(from, run.k_begin + i), angles, KeyPosition(i), sizes, 1,
                Direction::kForward, row);
    }
  }
  void LoadValues(const float* from, float* to) const {
    for (int64_t i = 0; i < run.k_count; ++i) {
      PrefetchKey(from, i);
      CopyRow(Columns(from, run.k_begin + i), sizes, to + i * sizes.padded);
    }
  }
  void LoadQueries(const float* from, const QueryRun& queries, int64_t first, int64_t rows,
                   float* to) const {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = to + i * sizes.padded;
      std::fill(row + sizes.head_width, row + sizes.padded, 0.0F);
      const auto out_row = static_cast<size_t>(queries.out_begin + first + i);
      RotateRow(Columns(from, queries.q_begin + first + i), angles, plan.position[out_row], sizes,
                sizes.scale * sizes.base, Direction::kForward, row);
    }
  }
};

// What forward reads and writes; q, k, v and out as (rows, D).
struct ForwardData {
  const float* q;
  const float* k;
  const float* v;
  float* out;
  float* log_sums;  // Of this head, by output row.
};

// A query and a key at one position are turned alike, so their product needs no rotation.
inline float OwnScore(const Job& job, const float* q, const float* k) {
  return nn::Dot(q, k, job.sizes.head_width) * job.sizes.scale;
}

// Mixes what a query sees: scores become weights, and then out. `mixed` is of the other keys.
struct Softmax {
  float largest = 0;
  float sum = 0;
  float own = 0;  // Weight of the query's own key.
};

inline void WriteMixed(const Job& job, const float* mixed, const Softmax& softmax,
                       const float* own_value, float* to) {
  const float factor = 1 / softmax.sum;
  for (int64_t e = 0; e < job.sizes.head_width; ++e) to[e] = mixed[e] * factor;
  if (own_value == nullptr) return;
  for (int64_t e = 0; e < job.sizes.head_width; ++e) to[e] += own_value[e] * softmax.own * factor;
}

// What backward reads and writes; all but log_sums as (rows, D).
struct BackwardData {
  const float* q;
  const float* k;
  const float* v;
  const float* out;
  const float* log_sums;  // Of this head, by output row.
  const float* dout;
  float* dq;  // Added to: runs may share rows.
  float* dk;
  float* dv;
  bool clear_dq = false;  // No two runs share rows, and dq is not cleared.
};

// The gradients that pass through a query's own key and value, which only this query sees.
inline void OwnBackward(const Job& job, const BackwardData& data, const QueryRun& asked, int64_t i,
                        float row_sum) {
  const int64_t width = job.sizes.head_width;
  const int64_t own = asked.own_begin + i;
  const float* q = job.Columns(data.q, asked.q_begin + i);
  const float* k = job.Columns(data.k, own);
  const float* dout = job.Columns(data.dout, asked.out_begin + i);
  float* dq = job.Columns(data.dq, asked.q_begin + i);
  float* dk = job.Columns(data.dk, own);
  float* dv = job.Columns(data.dv, own);
  const float weight = std::exp(OwnScore(job, q, k) - data.log_sums[asked.out_begin + i]);
  const float dweight = nn::Dot(dout, job.Columns(data.v, own), width);
  const float dscore = weight * (dweight - row_sum) * job.sizes.scale;
  for (int64_t e = 0; e < width; ++e) {
    dv[e] = weight * dout[e];
    dk[e] = dscore * q[e];
    dq[e] += dscore * k[e];
  }
}

}  // namespace kibitz::learn
