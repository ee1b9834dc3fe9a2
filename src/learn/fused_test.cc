// The fused functions beside their plain forms: values and gradients, and the same with any number
// of threads.
#include "learn/fused.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "learn/packed_attention.h"
#include "learn/precision.h"
#include "learn/runtime.h"
#include "learn/transformer.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::Exp;
using nn::Spread;
using torch::Tensor;

// Outputs, then the gradients of a fixed mix of them for each input.
using Computation = std::function<Tensor(const std::vector<Tensor>&)>;
std::vector<Tensor> Evaluate(const Computation& compute, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_());
  const Tensor out = compute(leaves);
  const auto mix = (torch::arange(out.numel()) % 7 - 2.5).reshape(out.sizes());
  (out * mix).sum().backward();
  std::vector<Tensor> results = {out.detach()};
  for (const Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

// Mixed precision: near the plain form, and the same with any number of threads.
void ExpectNearInBfloat16(const Computation& fast, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& expected) {
  const Computation rounded = [&](const std::vector<Tensor>& in) {
    const PrecisionScope scope(Precision::kBfloat16);  // Not around backward.
    return fast(in);
  };
  SetThreads(1);
  const auto one = Evaluate(rounded, inputs);
  SetThreads(2);
  const auto two = Evaluate(rounded, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double size = expected[i].norm().item<double>();
    EXPECT_LT((one[i] - expected[i]).norm().item<double>(), 1e-2 * size) << i;
    EXPECT_TRUE(torch::equal(one[i], two[i])) << i;
  }
}

void ExpectSame(const Computation& fast, const Computation& plain,
                const std::vector<Tensor>& inputs) {
  const auto expected = Evaluate(plain, inputs);
  ExpectNearInBfloat16(fast, inputs, expected);
  SetThreads(1);
  const auto one = Evaluate(fast, inputs);
  SetThreads(2);
  const auto two = Evaluate(fast, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(one[i].sizes(), expected[i].sizes()) << i;
    const double size = expected[i].abs().max().item<double>();
    EXPECT_LT((one[i] - expected[i]).abs().max().item<double>(), 1e-5 * size) << i;
    EXPECT_TRUE(torch::equal(one[i], two[i])) << i;
  }
}

Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  return torch::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

TEST(FusedTest, ExpIsExact) {
  for (float x = -86; x < 87; x += 0.37F) {
    const double expected = std::exp(static_cast<double>(x));
    EXPECT_NEAR(Exp(Spread(x))[0], expected, 2e-7 * expected) << x;
  }
  EXPECT_EQ(Exp(Spread(-1000))[0], 0);
  EXPECT_EQ(Exp(Spread(-INFINITY))[0], 0);
}

TEST(FusedTest, QuickExpIsNearlyExact) {
  for (float x = -86; x < 86; x += 0.37F) {
    const double expected = std::exp(static_cast<double>(x));
    EXPECT_NEAR(nn::QuickExp(Spread(x))[0], expected, 1e-5 * expected) << x;
  }
  EXPECT_LT(nn::QuickExp(Spread(-INFINITY))[0], 1e-37);
}

TEST(FusedTest, Exp2IsExact) {
  for (float x = -125; x < 127; x += 0.37F) {
    const double expected = std::exp2(static_cast<double>(x));
    EXPECT_NEAR(nn::Exp2(Spread(x))[0], expected, 2.5e-7 * expected) << x;
  }
  EXPECT_LT(nn::Exp2(Spread(-126))[0], 1e-37);
  EXPECT_LT(nn::Exp2(Spread(-1e6F))[0], 1e-37);
}

TEST(FusedTest, RmsNorm) {
  const Computation fast = [](const auto& in) { return FusedRmsNorm(in[0], in[1]); };
  const Computation plain = [](const auto& in) {
    RmsNorm norm(in[1].size(0));
    norm->scale = in[1];
    return norm(in[0]);
  };
  ExpectSame(fast, plain, {Random({700, 40}, 1), Random({40}, 2)});
  ExpectSame(fast, plain, {Random({3, 13}, 3), Random({13}, 4)});
}

TEST(FusedTest, Mlp) {
  const Computation fast = [](const auto& in) {
    return FusedMlp(in[0], {.scale = in[1], .gate = in[2], .up = in[3], .down = in[4]});
  };
  const Computation plain = [](const auto& in) {
    RmsNorm norm(in[1].size(0));
    norm->scale = in[1];
    const auto normed = norm(in[0]);
    const auto hidden = torch::silu(normed.matmul(in[2].t())) * normed.matmul(in[3].t());
    return in[0] + hidden.matmul(in[4].t());
  };
  const auto inputs = [](int64_t rows, int64_t width, int64_t hidden) {
    return std::vector<Tensor>{Random({rows, width}, 1), Random({width}, 2),
                               Random({hidden, width}, 3), Random({hidden, width}, 4),
                               Random({width, hidden}, 5)};
  };
  ExpectSame(fast, plain, inputs(700, 40, 50));
  ExpectSame(fast, plain, inputs(250, 64, 96));
  ExpectSame(fast, plain, inputs(3, 13, 7));
}

TEST(FusedTest, NormProject) {
  const Computation fast = [](const auto& in) {
    const auto all = NormProject(in[0], in[1], {in[2], in[3]});
    return torch::cat({all.outputs[0], all.x * 3, all.outputs[1]}, 1);
  };
  const Computation plain = [](const auto& in) {
    RmsNorm norm(in[1].size(0));
    norm->scale = in[1];
    const auto normed = norm(in[0]);
    return torch::cat({normed.matmul(in[2].t()), in[0] * 3, normed.matmul(in[3].t())}, 1);
  };
  ExpectSame(fast, plain,
             {Random({700, 40}, 1), Random({40}, 2), Random({48, 40}, 3), Random({200, 40}, 4)});
  ExpectSame(fast, plain,
             {Random({3, 13}, 1), Random({13}, 2), Random({5, 13}, 3), Random({1, 13}, 4)});
}

TEST(FusedTest, Project) {
  const Computation fast = [](const auto& in) {
    const auto out = Project(in[0], {in[1], in[2]});
    return torch::cat({out[0], out[1] * 2}, 1);
  };
  const Computation plain = [](const auto& in) {
    return torch::cat({in[0].matmul(in[1].t()), in[0].matmul(in[2].t()) * 2}, 1);
  };
  ExpectSame(fast, plain, {Random({1500, 64}, 1), Random({48, 64}, 2), Random({80, 64}, 3)});
  ExpectSame(fast, plain, {Random({7, 5}, 1), Random({3, 5}, 2), Random({4, 5}, 3)});
}

TEST(FusedTest, AddProjected) {
  const Computation fast = [](const auto& in) { return AddProjected(in[0], in[1], in[2]); };
  const Computation plain = [](const auto& in) { return in[0] + in[1].matmul(in[2].t()); };
  ExpectSame(fast, plain, {Random({1500, 48}, 1), Random({1500, 64}, 2), Random({48, 64}, 3)});
}

// Attention with a mask written out. seen: for each output row, the keys' rows it sees, in order.
Tensor PlainAttention(const std::vector<Tensor>& in, const AttentionPlan& plan,
                      const RotaryTable& rotary, int64_t heads) {
  const int64_t head_width = in[0].size(1) / heads;
  const auto turn = [&](const Tensor& row, int64_t position) {  // (D) -> (H, E)
    const RotaryTable at = {rotary.cosine.slice(0, position, position + 1),
                            rotary.sine.slice(0, position, position + 1)};
    return Rotate(row.reshape({1, 1, heads, head_width}), at)[0][0];
  };
  std::vector<Tensor> out(plan.seen.size());
  for (const KeyRun& run : plan.keys) {
    std::vector<Tensor> keys;
    for (int64_t i = 0; i < run.k_count; ++i) keys.push_back(turn(in[1][run.k_begin + i], i));
    const auto k = torch::stack(keys, 1);  // (H, keys, E)
    const auto v = in[2]
                       .slice(0, run.k_begin, run.k_begin + run.k_count)
                       .reshape({run.k_count, heads, head_width})
                       .transpose(0, 1);  // (H, keys, E)
    for (const QueryRun& asked : run.queries) {
      for (int64_t i = 0; i < asked.count; ++i) {
        const auto row = static_cast<size_t>(asked.out_begin + i);
        const auto q =
            turn(in[0][asked.q_begin + i], plan.position[row]).unsqueeze(1);  // (H, 1, E)
        auto seen_k = k.slice(1, 0, plan.seen[row]);                          // (H, seen, E)
        auto seen_v = v.slice(1, 0, plan.seen[row]);
        if (asked.own_begin >= 0) {
          const int64_t own = asked.own_begin + i;
          seen_k = torch::cat({seen_k, turn(in[1][own], plan.position[row]).unsqueeze(1)}, 1);
          seen_v = torch::cat({seen_v, in[2][own].reshape({heads, 1, head_width})}, 1);
        }
        const auto scores = q.matmul(seen_k.transpose(1, 2)) /
                            std::sqrt(static_cast<double>(head_width));  // (H, 1, seen)
        const auto mixed = torch::softmax(scores, -1).matmul(seen_v);
        out[row] = mixed.reshape({-1});
      }
    }
  }
  return torch::stack(out);
}

// Two sequences, the second asked twice with the same queries; blocks of 20 in the second asking.
AttentionPlan MakePlan(int32_t first, int32_t second) {
  AttentionPlan plan;
  plan.keys = {{0, first, {{0, 0, first}}},
               {first, second, {{first, first, second}, {first + second, first, second}}}};
  for (int32_t i = 0; i < first; ++i) plan.seen.push_back(i + 1);
  for (int32_t i = 0; i < second; ++i) plan.seen.push_back(i + 1);
  for (int32_t i = 0; i < second; ++i) plan.seen.push_back(std::min(second, (i / 20 + 1) * 20));
  for (int32_t count : {first, second, second}) {
    for (int32_t i = 0; i < count; ++i) plan.position.push_back(i);
  }
  return plan;
}

void ExpectSameAttention(const AttentionPlan& plan, const std::vector<Tensor>& inputs,
                         int64_t heads) {
  const auto rotary = MakeRotaryTable(400, inputs[0].size(1) / heads);
  const auto shared = std::make_shared<const AttentionPlan>(plan);
  ExpectSame(
      [&](const auto& in) { return PackedAttention(in[0], in[1], in[2], shared, rotary, heads); },
      [&](const auto& in) { return PlainAttention(in, plan, rotary, heads); }, inputs);
}

TEST(PackedAttentionTest, LikeTheMaskWrittenOut) {
  for (const int64_t width : {64, 12}) {  // Heads of 32 and of 6.
    for (const auto& [first, second] : {std::pair{57, 133}, {1, 2}, {20, 48}}) {
      const int64_t rows = first + second;
      ExpectSameAttention(
          MakePlan(first, second),
          {Random({rows, width}, 1), Random({rows, width}, 2) * 3, Random({rows, width}, 3)}, 2);
    }
  }
}

TEST(PackedAttentionTest, QueriesAtChosenPositions) {
  AttentionPlan plan;
  plan.keys = {{10, 101, {{0, 0, 4}}}};
  plan.position = {3, 50, 99, 100};
  plan.seen = {4, 68, 101, 101};
  ExpectSameAttention(plan, {Random({4, 32}, 1), Random({120, 32}, 2), Random({120, 32}, 3)}, 1);
}

TEST(PackedAttentionTest, QueriesThatSeeThemselves) {
  AttentionPlan plan;  // 30 keys; 55 queries behind them, each with a key of its own.
  plan.keys = {{0, 30, {{0, 0, 30}, {30, 30, 55, 30}}}};
  for (int32_t i = 0; i < 30; ++i) plan.seen.push_back(i + 1), plan.position.push_back(i);
  for (int32_t i = 0; i < 55; ++i) {
    plan.seen.push_back(std::min(30, 20 + i));
    plan.position.push_back(std::min(30, 20 + i));
  }
  ExpectSameAttention(plan, {Random({85, 64}, 1), Random({85, 64}, 2), Random({85, 64}, 3)}, 2);
}

}  // namespace
}  // namespace kibitz::learn
