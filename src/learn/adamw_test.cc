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

// As dense gradients without a first moment, on the rows that have one.
TEST(AdamWTest, UpdatesTheRowsOfASparseGradient) {
  LoopOptions options{.weight_decay = 0.1};
  std::vector<torch::Tensor> parameters = Parameters();
  AdamW optimizer(parameters, options);
  options.beta1 = 0;
  torch::Tensor row = parameters[0].detach()[7].clone();
  AdamW alone({row}, options);
  const torch::Tensor before = parameters[0].detach().clone();
  for (int step = 0; step < 5; ++step) {
    FillGradients(parameters, step);
    row.mutable_grad() = parameters[0].grad()[7].clone();
    const torch::Tensor rows = torch::tensor({7, 9, 7}, torch::kInt64);
    const torch::Tensor values = parameters[0].grad().index_select(0, rows) *
                                 torch::tensor({0.25F, 1.0F, 0.75F}).unsqueeze(1);
    parameters[0].mutable_grad() =
        torch::sparse_coo_tensor(rows.unsqueeze(0), values, parameters[0].sizes());
    ClipGradients(parameters, 0);
    optimizer.Step(1e-2);
    alone.Step(1e-2);
  }
  EXPECT_LT((parameters[0].detach()[7] - row).abs().max().item<double>(), 1e-6);
  const torch::Tensor moved = (parameters[0].detach() - before).abs().amax(1) > 0;
  EXPECT_EQ(moved.sum().item<int64_t>(), 2);
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

TEST(ClipGradientsTest, CountsTheRowsOfASparseGradient) {
  std::vector<torch::Tensor> parameters = Parameters();
  FillGradients(parameters, 0);
  const torch::Tensor dense = parameters[0].grad();
  parameters[0].mutable_grad() = dense.to_sparse(1);
  const double norm = ClipGradients(parameters, 10);
  EXPECT_GT(norm, 10);
  EXPECT_TRUE(torch::allclose(parameters[0].grad().to_dense(), dense * (10 / norm)));
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
