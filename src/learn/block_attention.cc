#include "learn/block_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "learn/bf16_block_attention.h"
#include "learn/parallel.h"
#include "learn/precision.h"
#include "learn/rms_rows.h"
#include "nn/transformer/block_attention.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlocksOfPiece = 16;  // Of one piece of work.

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

// In bfloat16; blocks of other sizes stay in float32.
bool IsRounded(const Plan& plan, Precision precision) {
  return precision == Precision::kBfloat16 && plan.s == kBf16BlockRows;
}

Bf16BlockSizes RoundedSizes(const Plan& plan) {
  return {.heads = plan.heads, .kv_heads = plan.kv_heads, .e = plan.e, .scale = plan.scale};
}

// dscores = scale * shares * (dshares - sum of shares * dshares), in place of dshares; (S, S).
void SoftmaxBackward(const float* shares, float* dshares, int64_t s, float scale) {
  for (int64_t i = 0; i < s; ++i) {
    const float sum = Dot(shares + i * s, dshares + i * s, s);
    for (int64_t j = 0; j < s; ++j) {
      dshares[i * s + j] = scale * shares[i * s + j] * (dshares[i * s + j] - sum);
    }
  }
}

// What the backward pass of one query head of one block reads and writes.
struct HeadData {
  const float* q;
  const float* k;
  const float* v;
  const float* shares;  // (S, S), after softmax.
  const float* dout;
  float* dq;
  float* dk;  // Added to, as dv.
  float* dv;
};

// With P the shares: dV = P^T dO, dP = dO V^T, dS = scale P (dP - sum of P dP), dQ = dS K,
// dK = dS^T Q. Scratch: transposed (E, S), dscores (S, S).
void HeadBackward(const Plan& plan, const HeadData& head, float* transposed, float* dscores) {
  nn::CachedGemm({.a = {.data = head.shares, .row = 1, .column = plan.s},
                  .b = head.dout,
                  .b_row = plan.width,
                  .c = head.dv,
                  .c_row = plan.kv_width,
                  .rows = plan.s,
                  .depth = plan.s,
                  .columns = plan.e,
                  .add = true});
  nn::TransposeInto(head.v, plan.kv_width, transposed, plan.s, plan.e);
  nn::CachedGemm({.a = {.data = head.dout, .row = plan.width},
                  .b = transposed,
                  .b_row = plan.s,
                  .c = dscores,
                  .c_row = plan.s,
                  .rows = plan.s,
                  .depth = plan.e,
                  .columns = plan.s});
  SoftmaxBackward(head.shares, dscores, plan.s, plan.scale);
  nn::CachedGemm({.a = {.data = dscores, .row = plan.s},
                  .b = head.k,
                  .b_row = plan.kv_width,
                  .c = head.dq,
                  .c_row = plan.width,
                  .rows = plan.s,
                  .depth = plan.s,
                  .columns = plan.e});
  nn::CachedGemm({.a = {.data = dscores, .row = 1, .column = plan.s},
                  .b = head.q,
                  .b_row = plan.width,
                  .c = head.dk,
                  .c_row = plan.kv_width,
                  .rows = plan.s,
                  .depth = plan.s,
                  .columns = plan.e,
                  .add = true});
}

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
    const bool rounded = IsRounded(plan, KeepPrecision(ctx));
    ForEachPiece(plan.blocks, kBlocksOfPiece, [&](int64_t begin, int64_t end) {
      if (rounded) {
        const HeadPlace place(plan, begin, 0);
        return AttendBlocksBf16(RoundedSizes(plan), end - begin,
                                {.q = q.data_ptr<float>() + place.q,
                                 .k = k.data_ptr<float>() + place.kv,
                                 .v = v.data_ptr<float>() + place.kv,
                                 .out = out.data_ptr<float>() + place.q,
                                 .shares = shares.data_ptr<float>() + place.scores});
      }
      std::vector<float> transposed(static_cast<size_t>(plan.e * plan.s));
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
          const HeadPlace kv_place(plan, block, kv_head);
          nn::TransposeInto(k.data_ptr<float>() + kv_place.kv, plan.kv_width, transposed.data(),
                            plan.s, plan.e);
          for (int64_t head = kv_head; head < heads; head += kv_heads) {
            const HeadPlace place(plan, block, head);
            nn::AttendBlock({.q = q.data_ptr<float>() + place.q,
                             .q_row = plan.width,
                             .k_transposed = transposed.data(),
                             .v = v.data_ptr<float>() + place.kv,
                             .v_row = plan.kv_width,
                             .out = out.data_ptr<float>() + place.q,
                             .out_row = plan.width},
                            plan.s, plan.e, shares.data_ptr<float>() + place.scores);
          }
        }
      }
    });
    ctx->save_for_backward({q, k, v, shares});
    ctx->saved_data["kv_heads"] = kv_heads;
    return out;
  }

  // Query heads of one key head add up.
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
    const bool rounded = IsRounded(plan, KeptPrecision(ctx));
    auto dq = torch::empty_like(q);
    auto dk = rounded ? torch::empty_like(k) : torch::zeros_like(k);
    auto dv = rounded ? torch::empty_like(v) : torch::zeros_like(v);
    ForEachPiece(plan.blocks, kBlocksOfPiece, [&](int64_t begin, int64_t end) {
      if (rounded) {
        const HeadPlace place(plan, begin, 0);
        return AttendBlocksBackwardBf16(RoundedSizes(plan), end - begin,
                                        {.q = q.data_ptr<float>() + place.q,
                                         .k = k.data_ptr<float>() + place.kv,
                                         .v = v.data_ptr<float>() + place.kv,
                                         .shares = shares.data_ptr<float>() + place.scores,
                                         .dout = dout.data_ptr<float>() + place.q,
                                         .dq = dq.data_ptr<float>() + place.q,
                                         .dk = dk.data_ptr<float>() + place.kv,
                                         .dv = dv.data_ptr<float>() + place.kv});
      }
      std::vector<float> transposed(static_cast<size_t>(plan.e * plan.s));
      std::vector<float> dscores(static_cast<size_t>(plan.s * plan.s));
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t head = 0; head < plan.heads; ++head) {
          const HeadPlace place(plan, block, head);
          HeadBackward(plan,
                       {.q = q.data_ptr<float>() + place.q,
                        .k = k.data_ptr<float>() + place.kv,
                        .v = v.data_ptr<float>() + place.kv,
                        .shares = shares.data_ptr<float>() + place.scores,
                        .dout = dout.data_ptr<float>() + place.q,
                        .dq = dq.data_ptr<float>() + place.q,
                        .dk = dk.data_ptr<float>() + place.kv,
                        .dv = dv.data_ptr<float>() + place.kv},
                       transposed.data(), dscores.data());
        }
      }
    });
    return {dq, dk, dv, Tensor(), Tensor(), Tensor()};
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
