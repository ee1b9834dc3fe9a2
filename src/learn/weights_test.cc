#include "learn/weights.h"

#include <gtest/gtest.h>

#include "learn/runtime.h"
#include "learn/transformer.h"
#include "tests/support/test_data.h"

namespace kibitz::learn {
namespace {

using testing::MessageOf;

TEST(WeightsTest, StartTheSameWithAnyNumberOfThreads) {
  torch::nn::Linear one(700, 300);
  torch::nn::Linear two(700, 300);
  SetThreads(1);
  InitWeights(*one, 5);
  SetThreads(2);
  InitWeights(*two, 5);
  EXPECT_TRUE(torch::equal(one->weight, two->weight));
  InitWeights(*two, 6);
  EXPECT_FALSE(torch::equal(one->weight, two->weight));
  const double bound = 1 / std::sqrt(700.0);
  EXPECT_NEAR(one->weight.max().item<double>(), bound, bound * 1e-3);
  EXPECT_NEAR(one->weight.std().item<double>(), bound / std::sqrt(3.0), bound * 1e-2);
}

TEST(WeightsTest, ParametersOfOneModuleDiffer) {
  SwiGlu mlp(16, 16);
  InitWeights(*mlp, 1);
  EXPECT_FALSE(torch::equal(mlp->w1->weight, mlp->w3->weight));
}

TEST(WeightsTest, ComeInPythonsOrder) {
  const TransformerLayer layer(8, 2, 12);
  std::vector<std::string> names;
  for (const io::NamedTensor& weight : WeightsOf(*layer)) names.push_back(weight.name);
  const std::vector<std::string> expected = {
      "attn.q_proj.weight",      "attn.k_proj.weight", "attn.v_proj.weight",
      "attn.output_proj.weight", "mlp.w1.weight",      "mlp.w2.weight",
      "mlp.w3.weight",           "sa_norm.scale",      "mlp_norm.scale"};
  EXPECT_EQ(names, expected);
}

TEST(WeightsTest, WrongFilesAreNamed) {
  SwiGlu wide(16, 24);
  const SwiGlu narrow(16, 12);
  const io::StateDict other(WeightsOf(*narrow), "narrow.pt");
  const std::string shape = MessageOf([&] { LoadWeights(*wide, other, "narrow.pt"); });
  EXPECT_NE(shape.find("narrow.pt: w1.weight is [12, 16], expected [24, 16]"), std::string::npos);
  auto more = WeightsOf(*wide);
  more.push_back({"w4.weight", more[0].tensor});
  const std::string extra =
      MessageOf([&] { LoadWeights(*wide, io::StateDict(more, "more.pt"), "more.pt"); });
  EXPECT_NE(extra.find("w4.weight"), std::string::npos);
  more.resize(2);
  const std::string missing =
      MessageOf([&] { LoadWeights(*wide, io::StateDict(more, "less.pt"), "less.pt"); });
  EXPECT_NE(missing.find("w3.weight"), std::string::npos);
}

}  // namespace
}  // namespace kibitz::learn
