#include "learn/block_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "learn/bf16_block_attention.h"
#include "learn/parallel.h"
#include "learn/precision.h"
#include "learn/rms_rows.h"
#include "nn/kernels/aligned.h"
#include "nn/transformer/block_attention.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlocksOfPiece = 4;  // Of one piece of work.

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
  for (int64_t i = 0; i < s; ++i, shares += s, dshares += s) {
    const float sum = Dot(shares, dshares, s);
    int64_t j = 0;
    for (; j + nn::kLanes <= s; j += nn::kLanes) {
      nn::Store(dshares + j, nn::Load(shares + j) * (nn::Load(dshares + j) - sum) * scale);
    }
    for (; j < s; ++j) dshares[j] = scale * shares[j] * (dshares[j] - sum);
  }
}

// The rows of one head of one block, (S, padded): whole vectors, so that products have no edge.
class PaddedRows {
 public:
  explicit PaddedRows(const Plan& plan)
      : s_(plan.s), e_(plan.e), padded_(nn::RoundUp(plan.e, nn::kLanes)), rows_(s_ * padded_) {}

  float* data() { return rows_.data(); }
  int64_t row() const { return padded_; }
  void Clear() { std::fill_n(rows_.data(), s_ * padded_, 0.0F); }
  // Leaves the padding, which is 0 at first.
  void Read(const float* from, int64_t from_row) {
    for (int64_t i = 0; i < s_; ++i) std::copy_n(from + i * from_row, e_, data() + i * padded_);
  }
  void Write(float* to, int64_t to_row) {
    for (int64_t i = 0; i < s_; ++i) std::copy_n(data() + i * padded_, e_, to + i * to_row);
  }

 private:
  int64_t s_;
  int64_t e_;
  int64_t padded_;
  nn::AlignedArray<float> rows_;
};

// What backward of a whole call reads and writes.
struct BackwardTensors {
  const float* q;
  const float* k;
  const float* v;
  const float* shares;  // After softmax.
  const float* dout;
  float* dq;
  float* dk;
  float* dv;
};

// Backward of one block after another. With P the shares: dV = P^T dO, dP = dO V^T,
// dS = scale P (dP - sum of P dP), dQ = dS K, dK = dS^T Q.
class BlockGradients {
 public:
  BlockGradients(const Plan& plan, const BackwardTensors& data)
      : plan_(plan),
        data_(data),
        q_(plan),
        k_(plan),
        dout_(plan),
        dq_(plan),
        dk_(plan),
        dv_(plan),
        v_transposed_(plan.e * plan.s),
        dscores_(plan.s * plan.s) {}

  // Query heads of one key head add up.
  void Run(int64_t block) {
    for (int64_t kv_head = 0; kv_head < plan_.kv_heads; ++kv_head) {
      const int64_t at = HeadPlace(plan_, block, kv_head).kv;
      k_.Read(data_.k + at, plan_.kv_width);
      nn::TransposeInto(data_.v + at, plan_.kv_width, v_transposed_.data(), plan_.s, plan_.e);
      dk_.Clear();
      dv_.Clear();
      for (int64_t head = kv_head; head < plan_.heads; head += plan_.kv_heads) {
        AddHead(HeadPlace(plan_, block, head));
      }
      dk_.Write(data_.dk + at, plan_.kv_width);
      dv_.Write(data_.dv + at, plan_.kv_width);
    }
  }

 private:
  void AddHead(const HeadPlace& place) {
    const float* shares = data_.shares + place.scores;
    q_.Read(data_.q + place.q, plan_.width);
    dout_.Read(data_.dout + place.q, plan_.width);
    AddTransposed(shares, dout_, dv_);
    nn::CachedGemm({.a = {.data = dout_.data(), .row = dout_.row()},
                    .b = v_transposed_.data(),
                    .b_row = plan_.s,
                    .c = dscores_.data(),
                    .c_row = plan_.s,
                    .rows = plan_.s,
                    .depth = plan_.e,
                    .columns = plan_.s});
    SoftmaxBackward(shares, dscores_.data(), plan_.s, plan_.scale);
    nn::CachedGemm({.a = {.data = dscores_.data(), .row = plan_.s},
                    .b = k_.data(),
                    .b_row = k_.row(),
                    .c = dq_.data(),
                    .c_row = dq_.row(),
                    .rows = plan_.s,
                    .depth = plan_.s,
                    .columns = dq_.row()});
    dq_.Write(data_.dq + place.q, plan_.width);
    AddTransposed(dscores_.data(), q_, dk_);
  }

  // sum += weights^T rows; weights: (S, S).
  void AddTransposed(const float* weights, PaddedRows& rows, PaddedRows& sum) const {
    nn::CachedGemm({.a = {.data = weights, .row = 1, .column = plan_.s},
                    .b = rows.data(),
                    .b_row = rows.row(),
                    .c = sum.data(),
                    .c_row = sum.row(),
                    .rows = plan_.s,
                    .depth = plan_.s,
                    .columns = sum.row(),
                    .add = true});
  }

  const Plan& plan_;
  BackwardTensors data_;
  PaddedRows q_;
  PaddedRows k_;
  PaddedRows dout_;
  PaddedRows dq_;
  PaddedRows dk_;
  PaddedRows dv_;
  nn::AlignedArray<float> v_transposed_;  // (E, S)
  nn::AlignedArray<float> dscores_;       // (S, S)
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
    auto dk = torch::empty_like(k);
    auto dv = torch::empty_like(v);
    const BackwardTensors data = {.q = q.data_ptr<float>(),
                                  .k = k.data_ptr<float>(),
                                  .v = v.data_ptr<float>(),
                                  .shares = shares.data_ptr<float>(),
                                  .dout = dout.data_ptr<float>(),
                                  .dq = dq.data_ptr<float>(),
                                  .dk = dk.data_ptr<float>(),
                                  .dv = dv.data_ptr<float>()};
    ForEachPiece(plan.blocks, kBlocksOfPiece, [&](int64_t begin, int64_t end) {
      if (rounded) {
        const HeadPlace place(plan, begin, 0);
        return AttendBlocksBackwardBf16(RoundedSizes(plan), end - begin,
                                        {.q = data.q + place.q,
                                         .k = data.k + place.kv,
                                         .v = data.v + place.kv,
                                         .shares = data.shares + place.scores,
                                         .dout = data.dout + place.q,
                                         .dq = data.dq + place.q,
                                         .dk = data.dk + place.kv,
                                         .dv = data.dv + place.kv});
      }
      BlockGradients backward(plan, data);
      for (int64_t block = begin; block < end; ++block) backward.Run(block);
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
