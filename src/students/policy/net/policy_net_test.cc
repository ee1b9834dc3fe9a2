// The fast form of the CNN beside the plain one: logits and gradients of all parameters, and
// the same numbers with any number of threads.
#include "students/policy/net/policy_net.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "learn/runtime.h"
#include "learn/weights.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;

Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  return torch::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

// Norms that start as ones and zeros would hide that they are mixed up.
PolicyNet MakeRandomNet(const NetConfig& config) {
  PolicyNet net = MakeNet(config);
  learn::InitWeights(*net, 1);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 10;
  for (Tensor& parameter : net->parameters()) {
    parameter.add_(Random(parameter.sizes(), seed++), 0.1);
  }
  return net;
}

// Logits, then the gradients of a fixed mix of them for each parameter.
std::vector<Tensor> Evaluate(NetModule& net, const Tensor& inputs, Form form) {
  net.zero_grad();
  const Tensor logits = net.Logits(inputs, form);
  const Tensor mix = (torch::arange(logits.numel()) % 7 - 2.5).reshape(logits.sizes());
  (logits * mix).sum().backward();
  std::vector<Tensor> results = {logits.detach()};
  for (const Tensor& parameter : net.parameters()) results.push_back(parameter.grad().clone());
  return results;
}

void ExpectSame(const NetConfig& config, int64_t boards) {
  const PolicyNet net = MakeRandomNet(config);
  const Tensor inputs = (Random({boards, config.Inputs()}, 2) > 1).to(torch::kFloat32);
  const auto expected = Evaluate(*net, inputs, Form::kPlain);
  learn::SetThreads(1);
  const auto one = Evaluate(*net, inputs, Form::kFast);
  learn::SetThreads(3);
  const auto three = Evaluate(*net, inputs, Form::kFast);
  std::vector<std::string> names = {"logits"};
  for (const auto& item : net->named_parameters()) names.push_back(item.key());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(one[i].sizes(), expected[i].sizes()) << names[i];
    const double size = expected[i].abs().max().item<double>();
    EXPECT_LT((one[i] - expected[i]).abs().max().item<double>(), 3e-5 * size + 1e-6) << names[i];
    EXPECT_TRUE(torch::equal(one[i], three[i])) << names[i];
  }
}

// Channels that fill vectors and that do not, batches of less than a piece, of some and of many,
// both norms.
TEST(PolicyNet, FastFormOfSmallWindows) {
  for (int channels : {5, 12, 48, 128}) {
    for (int64_t boards : {1, 13, 70}) {
      NetConfig config;
      config.hidden_channels = channels;
      config.num_layers = 2;
      config.flip_board = boards % 2 == 0;
      config.norm = boards == 13 ? NormKind::kRmsNorm : NormKind::kLayerNorm;
      SCOPED_TRACE(fmt::format("{} channels, {} boards", channels, boards));
      ExpectSame(config, boards);
    }
  }
}

TEST(PolicyNet, FastFormOfOtherWindows) {
  for (int kernel : {1, 5}) {
    for (NormKind norm : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
      NetConfig config;
      config.hidden_channels = 12;
      config.num_layers = 2;
      config.kernel_size = kernel;
      config.norm = norm;
      SCOPED_TRACE(kernel);
      ExpectSame(config, 13);
      ExpectSame(config, 300);
    }
  }
}

TEST(PolicyNet, FastFormOfPlanes) {
  for (int kernel : {3, 5}) {
    NetConfig config;
    config.hidden_channels = 12;
    config.num_layers = 1;
    config.kernel_size = kernel;
    config.head = HeadKind::kPlanes;
    ExpectSame(config, 13);
  }
}

// No two moves of a square are of one kind, so a plane tells them apart.
TEST(PolicyNet, MovesOfASquareHavePlanesOfTheirOwn) {
  std::set<std::pair<int, int>> seen;
  for (const MovePlane& move : MovePlanes()) {
    EXPECT_LT(move.plane, kMovePlanes);
    EXPECT_TRUE(seen.insert({move.from, move.plane}).second);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kFullVocabularySize));
}

TEST(PolicyNet, RecomputedBlocksGiveTheSameGradients) {
  learn::SetThreads(2);
  for (int kernel : {3, 5}) {
    NetConfig config;
    config.hidden_channels = 12;
    config.num_layers = 3;
    config.kernel_size = kernel;
    const PolicyNet net = MakeRandomNet(config);
    const Tensor inputs = (Random({13, config.Inputs()}, 2) > 1).to(torch::kFloat32);
    for (Form form : {Form::kPlain, Form::kFast}) {
      net->recompute_blocks = false;
      const auto expected = Evaluate(*net, inputs, form);
      net->recompute_blocks = true;
      const auto found = Evaluate(*net, inputs, form);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double size = expected[i].abs().max().item<double>();
        EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-6 * size + 1e-7) << i;
      }
    }
  }
}

}  // namespace
}  // namespace kibitz::policy
