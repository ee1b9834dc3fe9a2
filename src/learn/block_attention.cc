#include "learn/block_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "learn/lanes.h"
#include "learn/parallel.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlocksOfPiece = 16;  // Of one piece of work.

// A block's rows of one head: `stride` numbers from row to row.
struct Rows {
  const float* data;
  int64_t stride;
};
struct MutableRows {
  float* data;
  int64_t stride;
};

// out[i][j] (+)= sum over n of a[i][n] b[n][j], for `rows` x `columns` x `inner`. The columns are
// the contiguous ones.
template <bool kAdd>
void Multiply(const float* a, int64_t a_row, int64_t a_inner, Rows b, MutableRows out, int64_t rows,
              int64_t inner, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j + kLanes <= columns; j += kLanes) {
      Lanes sum = kAdd ? Load(out.data + i * out.stride + j) : Lanes{};
      for (int64_t n = 0; n < inner; ++n) {
        sum += a[i * a_row + n * a_inner] * Load(b.data + n * b.stride + j);
      }
      Store(out.data + i * out.stride + j, sum);
    }
    for (int64_t j = columns - columns % kLanes; j < columns; ++j) {
      float sum = kAdd ? out.data[i * out.stride + j] : 0;
      for (int64_t n = 0; n < inner; ++n) {
        sum += a[i * a_row + n * a_inner] * b.data[n * b.stride + j];
      }
      out.data[i * out.stride + j] = sum;
    }
  }
}

// (rows, columns) with strides to (columns, rows), contiguous.
void TransposeInto(Rows from, float* to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from.data[i * from.stride + j];
  }
}

void Softmax(float* row, int64_t size, float scale) {
  float most = row[0];
  for (int64_t i = 1; i < size; ++i) most = std::max(most, row[i]);
  float sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Lanes value = Exp((Load(row + i) - most) * scale);
    Store(row + i, value);
    sum += Sum(value);
  }
  for (; i < size; ++i) sum += row[i] = std::exp((row[i] - most) * scale);
  for (i = 0; i < size; ++i) row[i] /= sum;
}

// Sizes of one call.
struct Plan {
  Plan(const Tensor& q, const Tensor& k, const BlockShape& shape)
      : s(shape.rows),
        heads(shape.heads),
        kv_heads(shape.kv_heads),
        width(q.size(1)),
        kv_width(k.size(1)),
        e(width / heads),
        blocks(q.size(0) / s),
        scale(1 / std::sqrt(static_cast<float>(e))) {
    CHECK(q.size(0) % s == 0 && heads % kv_heads == 0 && e * kv_heads == kv_width);
  }

  int64_t s;
  int64_t heads;
  int64_t kv_heads;
  int64_t width;
  int64_t kv_width;
  int64_t e;
  int64_t blocks;
  float scale;
};

// One query head of one block: where its parts lie.
struct HeadPlace {
  HeadPlace(const Plan& plan, int64_t block, int64_t head)
      : q(block * plan.s * plan.width + head * plan.e),
        kv(block * plan.s * plan.kv_width + head % plan.kv_heads * plan.e),
        scores((block * plan.heads + head) * plan.s * plan.s) {}

  int64_t q;
  int64_t kv;
  int64_t scores;
};

struct BlockAttentionFunction : torch::autograd::Function<BlockAttentionFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q_in, const Tensor& k_in,
                        const Tensor& v_in, int64_t rows, int64_t heads, int64_t kv_heads) {
    const Tensor q = q_in.contiguous();
    const Tensor k = k_in.contiguous();
    const Tensor v = v_in.contiguous();
    const Plan plan(q, k, {.rows = rows, .heads = heads, .kv_heads = kv_heads});
    auto out = torch::empty_like(q);  // (R, H E)
    auto shares =
        torch::empty({plan.blocks, heads, plan.s, plan.s}, q.options());  // After softmax.
    ForEachPiece(plan.blocks, kBlocksOfPiece, [&](int64_t begin, int64_t end) {
      std::vector<float> turned(static_cast<size_t>(plan.e * plan.s));
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t head = 0; head < heads; ++head) {
          const HeadPlace place(plan, block, head);
          float* share = shares.data_ptr<float>() + place.scores;
          TransposeInto({k.data_ptr<float>() + place.kv, plan.kv_width}, turned.data(), plan.s,
                        plan.e);
          Multiply<false>(q.data_ptr<float>() + place.q, plan.width, 1, {turned.data(), plan.s},
                          {share, plan.s}, plan.s, plan.e, plan.s);
          for (int64_t i = 0; i < plan.s; ++i) Softmax(share + i * plan.s, plan.s, plan.scale);
          Multiply<false>(share, plan.s, 1, {v.data_ptr<float>() + place.kv, plan.kv_width},
                          {out.data_ptr<float>() + place.q, plan.width}, plan.s, plan.s, plan.e);
        }
      }
    });
    ctx->save_for_backward({q, k, v, shares});
    ctx->saved_data["kv_heads"] = kv_heads;
    return out;
  }

  // With P the shares: dV = P^T dO, dP = dO V^T, dS = scale P (dP - sum of P dP), dQ = dS K,
  // dK = dS^T Q. Query heads of one key head add up.
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& q = saved[0];
    const Tensor& k = saved[1];
    const Tensor& v = saved[2];
    const Tensor& shares = saved[3];
    const Tensor dout = gradients[0].contiguous();
    const Plan plan(q, k,
                    {.rows = shares.size(3),
                     .heads = shares.size(1),
                     .kv_heads = ctx->saved_data["kv_heads"].toInt()});
    auto dq = torch::empty_like(q);
    auto dk = torch::zeros_like(k);
    auto dv = torch::zeros_like(v);
    ForEachPiece(plan.blocks, kBlocksOfPiece, [&](int64_t begin, int64_t end) {
      std::vector<float> turned(static_cast<size_t>(plan.e * plan.s));
      std::vector<float> dscores(static_cast<size_t>(plan.s * plan.s));
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t head = 0; head < plan.heads; ++head) {
          const HeadPlace place(plan, block, head);
          const float* share = shares.data_ptr<float>() + place.scores;
          const float* doutput = dout.data_ptr<float>() + place.q;
          Multiply<true>(share, 1, plan.s, {doutput, plan.width},
                         {dv.data_ptr<float>() + place.kv, plan.kv_width}, plan.s, plan.s, plan.e);
          TransposeInto({v.data_ptr<float>() + place.kv, plan.kv_width}, turned.data(), plan.s,
                        plan.e);
          Multiply<false>(doutput, plan.width, 1, {turned.data(), plan.s}, {dscores.data(), plan.s},
                          plan.s, plan.e, plan.s);
          BackThroughSoftmax(share, dscores.data(), plan.s, plan.scale);
          Multiply<false>(dscores.data(), plan.s, 1,
                          {k.data_ptr<float>() + place.kv, plan.kv_width},
                          {dq.data_ptr<float>() + place.q, plan.width}, plan.s, plan.s, plan.e);
          Multiply<true>(dscores.data(), 1, plan.s, {q.data_ptr<float>() + place.q, plan.width},
                         {dk.data_ptr<float>() + place.kv, plan.kv_width}, plan.s, plan.s, plan.e);
        }
      }
    });
    return {dq, dk, dv, Tensor(), Tensor(), Tensor()};
  }

  static void BackThroughSoftmax(const float* share, float* dscores, int64_t s, float scale) {
    for (int64_t i = 0; i < s; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < s; ++j) sum += share[i * s + j] * dscores[i * s + j];
      for (int64_t j = 0; j < s; ++j) {
        dscores[i * s + j] = scale * share[i * s + j] * (dscores[i * s + j] - sum);
      }
    }
  }
};

}  // namespace

Tensor BlockAttention(const Tensor& q, const Tensor& k, const Tensor& v, const BlockShape& shape) {
  CHECK(q.device().is_cpu() && q.scalar_type() == torch::kFloat32);
  return BlockAttentionFunction::apply(q, k, v, shape.rows, shape.heads, shape.kv_heads);
}

Tensor PlainBlockAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const BlockShape& shape) {
  const int64_t e = q.size(1) / shape.heads;
  const auto split = [&](const Tensor& x, int64_t heads) {
    return x.reshape({-1, shape.rows, heads, e}).transpose(1, 2);  // (B, heads, S, E)
  };
  const int64_t times = shape.heads / shape.kv_heads;
  const auto queries = split(q, shape.heads);                           // (B, H, S, E)
  const auto keys = split(k, shape.kv_heads).repeat({1, times, 1, 1});  // Head h is h mod K.
  const auto values = split(v, shape.kv_heads).repeat({1, times, 1, 1});
  const auto scores = queries.matmul(keys.transpose(2, 3)) / std::sqrt(static_cast<double>(e));
  const auto out = scores.softmax(-1).matmul(values);  // (B, H, S, E)
  return out.transpose(1, 2).reshape({q.size(0), q.size(1)});
}

}  // namespace kibitz::learn
