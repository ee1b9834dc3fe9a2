#include "learn/adamw.h"

#include <gtest/gtest.h>

#include "io/weights/torch_file.h"
#include "learn/weights.h"
#include "tests/support/test_data.h"

namespace kibitz::learn {
namespace {

std::vector<torch::Tensor> Parameters() {
  torch::manual_seed(1);
  std::vector<torch::Tensor> parameters = {torch::randn({300, 200}), torch::randn({7})};
  for (torch::Tensor& parameter : parameters) parameter.requires_grad_(true);
  return parameters;
}

void FillGradients(std::vector<torch::Tensor>& parameters, int step) {
  torch::manual_seed(100 + static_cast<uint64_t>(step));
  for (torch::Tensor& parameter : parameters) {
    parameter.mutable_grad() = torch::randn_like(parameter) * 0.1;
  }
}

TEST(AdamWTest, EqualsTorchs) {
  std::vector<torch::Tensor> ours = Parameters();
  std::vector<torch::Tensor> theirs = Parameters();
  const LoopOptions options{.weight_decay = 0.1};
  AdamW optimizer(ours, options);
  torch::optim::AdamW reference(
      theirs, torch::optim::AdamWOptions(3e-3).weight_decay(0.1).betas({0.9, 0.999}));
  for (int step = 0; step < 30; ++step) {
    FillGradients(ours, step);
    FillGradients(theirs, step);
    optimizer.Step(3e-3);
    reference.step();
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_TRUE(torch::allclose(ours[i], theirs[i], 1e-6, 1e-7)) << "step " << step;
    }
  }
}

TEST(AdamWTest, AParameterWithoutGradientStays) {
  std::vector<torch::Tensor> parameters = Parameters();
  const torch::Tensor before = parameters[1].detach().clone();
  AdamW optimizer(parameters, {});
  FillGradients(parameters, 0);
  parameters[1].mutable_grad() = torch::Tensor();
  optimizer.Step(0.1);
  EXPECT_TRUE(torch::equal(parameters[1], before));
}

TEST(AdamWTest, GoesOnFromItsSavedState) {
  const kibitz::testing::TempFolder folder;
  std::vector<torch::Tensor> whole = Parameters();
  std::vector<torch::Tensor> parted = Parameters();
  AdamW one(whole, {});
  {
    AdamW first(parted, {});
    for (int step = 0; step < 3; ++step) {
      FillGradients(parted, step);
      first.Step(1e-2);
    }
    io::WritePt(folder.File("o.pt"), first.ToValue());
  }
  AdamW second(parted, {});
  second.Restore(io::ReadPt(folder.File("o.pt")), "o.pt");
  for (int step = 0; step < 6; ++step) {
    FillGradients(whole, step);
    one.Step(1e-2);
    if (step < 3) continue;
    FillGradients(parted, step);
    second.Step(1e-2);
  }
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(torch::equal(whole[i], parted[i]));
  std::vector<torch::Tensor> others = {torch::randn({2})};
  AdamW other(others, {});
  EXPECT_NE(
      kibitz::testing::MessageOf([&] { other.Restore(io::ReadPt(folder.File("o.pt")), "o.pt"); }),
      "");
}

TEST(ClipGradientsTest, ScalesToTheNorm) {
  std::vector<torch::Tensor> parameters = Parameters();
  FillGradients(parameters, 0);
  const double norm = ClipGradients(parameters, 0);
  EXPECT_GT(norm, 10);
  EXPECT_NEAR(ClipGradients(parameters, 10), norm, 1e-9);
  EXPECT_NEAR(ClipGradients(parameters, 10), 10, 1e-4);
  parameters[1].mutable_grad().fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(ClipGradients(parameters, 10)));
}

}  // namespace
}  // namespace kibitz::learn
