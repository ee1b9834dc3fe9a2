#include "learn/block_attention.h"

#include <gtest/gtest.h>

#include <vector>

#include "learn/precision.h"
#include "learn/runtime.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;

struct Outcome {
  Tensor out;
  std::vector<Tensor> gradients;
};

template <typename Attention>
Outcome Evaluate(const Attention& attention, const std::vector<Tensor>& inputs,
                 const BlockShape& shape) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_());
  const Tensor out = attention(leaves[0], leaves[1], leaves[2], shape);
  const auto mix = (torch::arange(out.numel()) % 7 - 2.5).reshape(out.sizes());
  (out * mix).sum().backward();
  Outcome outcome{out.detach(), {}};
  for (const Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad());
  return outcome;
}

// Mixed precision: near the plain form, and the same with any number of threads.
void ExpectBlocksNearInBfloat16(const std::vector<Tensor>& inputs, const BlockShape& shape,
                                const Outcome& plain) {
  const auto rounded = [](const Tensor& q, const Tensor& k, const Tensor& v, const BlockShape& of) {
    const PrecisionScope scope(Precision::kBfloat16);  // Not around backward.
    return BlockAttention(q, k, v, of);
  };
  SetThreads(1);
  const Outcome one = Evaluate(rounded, inputs, shape);
  SetThreads(2);
  const Outcome two = Evaluate(rounded, inputs, shape);
  const auto expect_near = [](const Tensor& found, const Tensor& expected) {
    EXPECT_LT((found - expected).norm().item<double>(), 1e-2 * expected.norm().item<double>());
  };
  expect_near(one.out, plain.out);
  EXPECT_TRUE(torch::equal(one.out, two.out));
  for (size_t i = 0; i < 3; ++i) {
    expect_near(one.gradients[i], plain.gradients[i]);
    EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i]));
  }
}

TEST(BlockAttention, AgreesWithThePlainForm) {
  struct Case {
    BlockShape shape;
    int64_t head_width;
    int64_t blocks;
  };
  const std::vector<Case> cases = {{{16, 4, 4}, 32, 5},
                                   {{16, 4, 2}, 8, 40},
                                   {{16, 8, 4}, 28, 3},
                                   {{16, 6, 3}, 24, 3},
                                   {{5, 2, 1}, 11, 2}};  // No multiple of any vector.
  for (const Case& item : cases) {
    const int64_t rows = item.blocks * item.shape.rows;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    std::vector<Tensor> inputs;
    for (int64_t heads : {item.shape.heads, item.shape.kv_heads, item.shape.kv_heads}) {
      inputs.push_back(torch::randn({rows, heads * item.head_width}, generator));
    }
    const Outcome plain = Evaluate(PlainBlockAttention, inputs, item.shape);
    SetThreads(1);
    const Outcome one = Evaluate(BlockAttention, inputs, item.shape);
    SetThreads(2);
    const Outcome two = Evaluate(BlockAttention, inputs, item.shape);
    EXPECT_LT((one.out - plain.out).abs().max().item<double>(), 1e-5);
    EXPECT_TRUE(torch::equal(one.out, two.out));
    ExpectBlocksNearInBfloat16(inputs, item.shape, plain);
    for (size_t i = 0; i < 3; ++i) {
      const double size = plain.gradients[i].abs().max().item<double>();
      EXPECT_LT((one.gradients[i] - plain.gradients[i]).abs().max().item<double>(), 1e-5 * size);
      EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i]));
    }
  }
}

}  // namespace
}  // namespace kibitz::learn
