// Attention over sequences laid end to end: no padding, and no mask. A query sees the first `seen`
// keys of its sequence, which covers causal masks and, when blocks are runs of neighbours, causal
// masks with blocks that are bidirectional inside. Scores exist for a few queries at a time only,
// and backward computes them again. On the CPU in float32. Letters: H heads, E head width, D = H E.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "learn/transformer.h"

namespace kibitz::learn {

// Neighbouring queries of one sequence.
struct QueryRun {
  int64_t out_begin = 0;  // Their rows in the output ...
  int64_t q_begin = 0;    // ... and in q. Two runs may use the same rows of q.
  int64_t count = 0;
  // Queries that also see a key of their own, at their own position: rows own_begin, own_begin + 1,
  // ... of k and v, which are in no key run. -1: none.
  int64_t own_begin = -1;
};

// One sequence's keys, rows [k_begin, k_begin + k_count) at positions 0, 1, ..., and its queries.
// No two key runs share a row.
struct KeyRun {
  int64_t k_begin = 0;
  int64_t k_count = 0;
  std::vector<QueryRun> queries;
};

// Keys of its run that a query does not see though they are before the last it sees.
struct HiddenKeys {
  int32_t begin = 0;
  int32_t end = 0;
};

struct AttentionPlan {
  std::vector<KeyRun> keys;
  std::vector<int32_t> position;  // Of each output row's query in its sequence.
  std::vector<int32_t> seen;  // Of each output row: keys seen, at least 1; never falls in a run.
  std::vector<HiddenKeys> hidden = {};     // Of each output row, or empty.
  std::vector<int32_t> key_position = {};  // Of each row of k, or empty: its place in its run.
};

torch::Tensor PackedAttention(const torch::Tensor& q,  // (rows of q, D), not yet rotated
                              const torch::Tensor& k,  // (rows of k, D), not yet rotated
                              const torch::Tensor& v,  // (rows of k, D)
                              std::shared_ptr<const AttentionPlan> plan, const RotaryTable& rotary,
                              int64_t heads);  // (output rows, D)

}  // namespace kibitz::learn
