// The fast form of the CNN beside the plain one, and the mixed one beside the fast: logits and
// gradients of all parameters, and the same numbers with any number of threads.
#include "students/policy/net/policy_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/weights/safetensors.h"
#include "learn/autocast.h"
#include "learn/runtime.h"
#include "learn/weights.h"
#include "nn/kernels/amx.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/vocabulary.h"
#include "students/policy/net/loss.h"
#include "tests/support/test_data.h"

namespace kibitz::policy {
namespace {

using kibitz::testing::MessageOf;
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

std::vector<std::string> NamesOfResults(const NetModule& net) {
  std::vector<std::string> names = {"logits"};
  for (const auto& item : net.named_parameters()) names.push_back(item.key());
  return names;
}

void ExpectSame(const NetConfig& config, int64_t boards) {
  const PolicyNet net = MakeRandomNet(config);
  const Tensor inputs = (Random({boards, config.form().size()}, 2) > 1).to(torch::kFloat32);
  const auto expected = Evaluate(*net, inputs, Form::kPlain);
  learn::SetThreads(1);
  const auto one = Evaluate(*net, inputs, Form::kFast);
  learn::SetThreads(2);
  const auto two = Evaluate(*net, inputs, Form::kFast);
  learn::SetThreads(5);
  const auto five = Evaluate(*net, inputs, Form::kFast);
  const std::vector<std::string> names = NamesOfResults(*net);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(one[i].sizes(), expected[i].sizes()) << names[i];
    const double size = expected[i].abs().max().item<double>();
    EXPECT_LT((one[i] - expected[i]).abs().max().item<double>(), 3e-5 * size + 1e-6) << names[i];
    EXPECT_TRUE(torch::equal(one[i], two[i])) << names[i];
    EXPECT_TRUE(torch::equal(one[i], five[i])) << names[i];
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
    config.flip_board = true;
    config.attack_planes = true;
    ExpectSame(config, 13);
  }
}

// Rounding to 8 bits of mantissa costs about a half percent; more in gradients of biases, sums of
// numbers that nearly cancel.
void ExpectClose(const NetConfig& config, int64_t boards) {
  const PolicyNet net = MakeRandomNet(config);
  const Tensor inputs = (Random({boards, config.form().size()}, 2) > 1).to(torch::kFloat32);
  learn::SetThreads(1);
  const auto expected = Evaluate(*net, inputs, Form::kFast);
  const learn::Autocast autocast(torch::kCPU, true);
  const auto one = Evaluate(*net, inputs, Form::kFast);
  learn::SetThreads(3);
  const auto three = Evaluate(*net, inputs, Form::kFast);
  const std::vector<std::string> names = NamesOfResults(*net);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(one[i].sizes(), expected[i].sizes()) << names[i];
    const double size = expected[i].norm().item<double>();
    const double difference = (one[i] - expected[i]).norm().item<double>();
    EXPECT_LT(difference, (names[i].ends_with("bias") ? 0.04 : 0.015) * size) << names[i];
    EXPECT_TRUE(torch::equal(one[i], three[i])) << names[i];
  }
}

TEST(PolicyNet, MixedFormIsCloseToTheFastOne) {
  if (!nn::HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  for (int channels : {5, 12, 48, 64}) {
    for (int64_t boards : {1, 13, 70, 350}) {
      NetConfig config;
      config.hidden_channels = channels;
      config.num_layers = 2;
      config.flip_board = boards % 2 == 0;
      config.norm = boards == 13 ? NormKind::kRmsNorm : NormKind::kLayerNorm;
      config.attack_planes = boards == 350;
      config.head = boards == 350 ? HeadKind::kPlanes : HeadKind::kFlat;
      SCOPED_TRACE(fmt::format("{} channels, {} boards", channels, boards));
      ExpectClose(config, boards);
    }
  }
}

// Other windows stay in float32.
TEST(PolicyNet, MixedFormOfOtherWindows) {
  if (!nn::HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  NetConfig config;
  config.hidden_channels = 12;
  config.num_layers = 1;
  config.kernel_size = 5;
  ExpectClose(config, 13);
}

// Weights of a network without attack planes make one that answers alike and learns to use them.
TEST(PolicyNet, AttackPlanesStartAtZero) {
  const kibitz::testing::TempFolder folder;
  NetConfig config;
  config.hidden_channels = 12;
  config.num_layers = 1;
  config.flip_board = true;
  const PolicyNet before = MakeRandomNet(config);
  io::WriteSafetensors(folder.File("model.safetensors"), {learn::WeightsOf(*before)});
  config.attack_planes = true;
  const PolicyNet net = MakeRandomNet(config);
  LoadWeightsInto(*net, folder.File("model.safetensors"));
  const auto first = [](const Tensor& tensor, int64_t dimension) {
    return tensor.narrow(dimension, 0, InputForm{.flip = true}.channels());
  };
  const Tensor inputs = (Random({13, config.form().size()}, 2) > 1).to(torch::kFloat32);
  const Tensor fewer = first(inputs.view({13, 64, -1}), 2).contiguous().view({13, -1});
  for (const Form form : {Form::kPlain, Form::kFast}) {
    const auto expected = Evaluate(*before, fewer, form);
    const auto found = Evaluate(*net, inputs, form);
    EXPECT_LT((found[0] - expected[0]).abs().max().item<double>(), 1e-4);
    EXPECT_GT(found[1].narrow(1, 17, chess::kAttackPlanes).abs().min().item<double>(), 0);
    EXPECT_LT((first(found[1], 1) - expected[1]).abs().max().item<double>(),
              1e-4 * expected[1].abs().max().item<double>());
  }
  const auto own = net->named_parameters();
  for (const auto& item : before->named_parameters()) {
    const Tensor& copied = own[item.key()];
    const bool input = item.key() == "layers.0.weight";
    EXPECT_TRUE(torch::equal(input ? first(copied, 1) : copied, item.value())) << item.key();
  }
  // A network that lacks them cannot read the weights of one that has them.
  io::WriteSafetensors(folder.File("more.safetensors"), {learn::WeightsOf(*net)});
  EXPECT_THAT(MessageOf([&] { LoadWeightsInto(*before, folder.File("more.safetensors")); }),
              ::testing::HasSubstr("layers.0.weight is [12, 46, 3, 3], expected [12, 17, 3, 3]"));
}

// A network with more blocks than its weights answers alike at first, and its new blocks learn.
TEST(PolicyNet, AddedBlocksChangeNothingAtFirst) {
  const kibitz::testing::TempFolder folder;
  NetConfig config;
  config.hidden_channels = 12;
  config.num_layers = 1;
  config.flip_board = true;
  const PolicyNet before = MakeRandomNet(config);
  io::WriteSafetensors(folder.File("model.safetensors"), {learn::WeightsOf(*before)});
  config.num_layers = 3;
  const PolicyNet net = MakeRandomNet(config);
  LoadWeightsInto(*net, folder.File("model.safetensors"));
  const Tensor inputs = (Random({13, config.form().size()}, 2) > 1).to(torch::kFloat32);
  for (const Form form : {Form::kPlain, Form::kFast}) {
    torch::NoGradGuard guard;
    EXPECT_LT((net->Logits(inputs, form) - before->Logits(inputs, form)).abs().max().item<double>(),
              1e-4);
  }
  net->Logits(inputs, Form::kFast).square().sum().backward();
  for (const char* name : {"layers.3.conv2.weight", "layers.4.conv2.weight"}) {
    EXPECT_GT(net->named_parameters()[name].grad().abs().max().item<double>(), 0) << name;
  }
  // Weights without blocks that their config names are damaged.
  io::WriteModel(folder.File("damaged"),
                 io::StateDict(learn::WeightsOf(*before), folder.File("damaged")),
                 FieldsOf(config).ToTree());
  EXPECT_THROW(LoadWeightsInto(*net, folder.File("damaged")), Error);
  // Nor does a network of fewer blocks read what has more.
  io::WriteSafetensors(folder.File("more.safetensors"), {learn::WeightsOf(*net)});
  EXPECT_THROW(LoadWeightsInto(*before, folder.File("more.safetensors")), Error);
}

// The labels of a few boards by heart.
double LossAfterSteps(Form form, int steps) {
  NetConfig config;
  config.hidden_channels = 32;
  config.num_layers = 2;
  const PolicyNet net = MakeNet(config);
  learn::InitWeights(*net, 1);
  const Tensor inputs = (Random({48, config.form().size()}, 2) > 1).to(torch::kFloat32);
  const Tensor moves = torch::arange(48) * 37 % config.num_moves;
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  double loss = 0;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor value = torch::cross_entropy_loss(net->Logits(inputs, form), moves);
    value.backward();
    optimizer.step();
    loss = value.item<double>();
  }
  return loss;
}

TEST(PolicyNet, MixedFormLearnsLikeTheFastOne) {
  if (!nn::HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  learn::SetThreads(2);
  for (int steps : {1, 4, 8}) {
    const double expected = LossAfterSteps(Form::kFast, steps);
    EXPECT_NEAR(LossAfterSteps(Form::kMixed, steps), expected, 0.02 * expected + 0.01) << steps;
  }
  EXPECT_LT(LossAfterSteps(Form::kMixed, 30), 0.1 * LossAfterSteps(Form::kMixed, 1));
}

// The loss in one pass, which mixed precision takes: the same in float32 as torch's functions.
TEST(PolicyNet, MixedLossIsTheSame) {
  if (!nn::HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  TargetBatch batch;
  batch.rows = torch::tensor({0, 0, 1, 2, 2, 2}, torch::kInt64);
  batch.moves = torch::tensor({3, 100, 36, 0, 1, 36}, torch::kInt64);
  batch.shares = torch::tensor({0.5F, 0.25F, 1.0F, 0.125F, 0.5F, 0.375F});
  const auto value_and_gradient = [&](bool mixed) {
    const learn::Autocast autocast(torch::kCPU, mixed);
    const Tensor logits = (Random({40, 101}, 5) * 4).requires_grad_();
    const Tensor loss = SoftLoss(logits, batch);
    (loss * 3).backward();
    return std::pair(loss.item<double>(), logits.grad());
  };
  const auto [expected, expected_gradient] = value_and_gradient(false);
  const auto [found, gradient] = value_and_gradient(true);
  EXPECT_NEAR(found, expected, 1e-6 * expected);
  EXPECT_LT((gradient - expected_gradient).abs().max().item<double>(), 1e-7);
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
    const Tensor inputs = (Random({13, config.form().size()}, 2) > 1).to(torch::kFloat32);
    for (Form form : {Form::kPlain, Form::kFast, Form::kMixed}) {
      if (form == Form::kMixed && !nn::HasAvx512Bf16()) continue;
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
