// The 2048 student's network and losses against recorded results.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "learn/weights.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::GoldenPath;
using kibitz::testing::ReadWhole;
using torch::Tensor;
using Json = nlohmann::json;

Json Golden(const std::string& name) {
  return Json::parse(ReadWhole(GoldenPath("twenty48/" + name)));
}

Tensor Array(const std::string& name) {
  return learn::FromFile(io::NpyFile::Open(GoldenPath("twenty48/" + name)).AsTensor());
}

void Flatten(const Json& json, std::vector<float>& out) {
  if (!json.is_array())
    return out.push_back(json.is_boolean() ? json.get<bool>() : json.get<float>());
  for (const Json& item : json) Flatten(item, out);
}

Tensor FromJson(const Json& json) {
  std::vector<int64_t> shape;
  for (const Json* level = &json; level->is_array(); level = &(*level)[0]) {
    shape.push_back(static_cast<int64_t>(level->size()));
  }
  std::vector<float> numbers;
  Flatten(json, numbers);
  return torch::tensor(numbers).reshape(shape);
}

double Apart(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

TEST(GoldenTwenty48Net, Outputs) {
  for (const std::string name : {"action_policy", "binned_ev", "binned_ev_mha"}) {
    const std::string folder = GoldenPath("twenty48/model/" + name);
    for (const std::string& path : {folder, folder + "/model.safetensors", folder + "/model.pt"}) {
      Encoder net(*ConfigOf(folder));
      LoadWeightsInto(net, path);
      const torch::NoGradGuard no_grad;
      const Tensor tokens = Array("model/" + name + "/tokens.npy");
      for (Form form : {Form::kPlain, Form::kFused}) {
        EXPECT_LT(Apart(net->Hidden(tokens, form), Array("model/" + name + "/hidden.npy")), 1e-5);
        const Tensor logits = net->forward(tokens, form);
        EXPECT_LT(Apart(logits, Array("model/" + name + "/logits.npy")), 1e-5);
        EXPECT_LT(Apart(logits.to(torch::kFloat64), Array("model/" + name + "/logits_f64.npy")),
                  1e-5);
        if (logits.dim() == 3) {
          EXPECT_LT(Apart(logits.softmax(2), Array("model/" + name + "/probs.npy")), 1e-5);
        }
      }
    }
  }
}

TEST(GoldenTwenty48Net, ABinnedInitLoadsIntoAPolicy) {
  const std::string path = GoldenPath("twenty48/model/binned_ev");
  NetConfig config = *ConfigOf(path);
  config.head_type = HeadType::kActionPolicy;
  Encoder net(config);
  learn::InitWeights(*net, 1);
  const Tensor head = net->policy_head->weight.clone();
  LoadWeightsInto(net, path);
  EXPECT_TRUE(torch::equal(net->policy_head->weight, head));
  const torch::NoGradGuard no_grad;
  EXPECT_LT(Apart(net->Hidden(Array("model/binned_ev/tokens.npy"), Form::kPlain),
                  Array("model/binned_ev/hidden.npy")),
            1e-5);
}

TargetRows RowsFrom(const Json& item) {
  TargetRows rows;
  rows.legal = FromJson(item["legal"]).to(torch::kBool);
  if (item.contains("move_targets")) rows.moves = FromJson(item["move_targets"]).to(torch::kInt64);
  if (item.contains("bin_targets")) rows.bins = FromJson(item["bin_targets"]).to(torch::kInt64);
  return rows;
}

void ExpectLoss(const Losses& losses, const Tensor& leaf, const Json& expected) {
  EXPECT_NEAR(losses.total.item<double>(), expected["loss"].get<double>(), 1e-5);
  if (expected.contains("head_losses")) {
    EXPECT_LT(Apart(losses.head_losses, FromJson(expected["head_losses"])), 1e-5);
  }
  if (!expected.contains("dloss_dlogits")) return;
  losses.total.backward();
  EXPECT_LT(Apart(leaf.grad(), FromJson(expected["dloss_dlogits"])), 1e-6);
}

TEST(GoldenTwenty48Net, HardMoveLosses) {
  const Json golden = Golden("losses.json");
  const Json& hard = golden["hard_move"];
  const TargetRows rows = RowsFrom(hard);
  const auto fresh = [](const Json& item) {
    return FromJson(item["student_logits"]).requires_grad_();
  };
  Tensor logits = fresh(hard);
  ExpectLoss(HardMoveLoss(logits, rows, false), logits, hard["reference"]);
  logits = fresh(hard);
  ExpectLoss(HardMoveLoss(logits, rows, true), logits, hard["doc_masked"]);
  const Json& head = golden["hard_move_head"];
  logits = fresh(head);
  ExpectLoss(HardMoveLoss(logits, RowsFrom(head), false), logits, head);
}

TEST(GoldenTwenty48Net, BinnedLosses) {
  const Json golden = Golden("losses.json");
  for (const std::string name : {"binned_ev_default", "binned_ev_upper_bounds_default_edges"}) {
    const Json& item = golden[name];
    const Tensor logits = FromJson(item["logits"]).requires_grad_();
    const Losses losses = BinnedLoss(logits, RowsFrom(item));
    ExpectLoss(losses, logits, item);
    losses.total.backward();
    EXPECT_LT(Apart(logits.grad(), Array(name + "_grad.npy")), 1e-6);
  }
  const Json& item = golden["binned_ev_upper_bounds_default_edges"];
  TargetRows rows = RowsFrom(item);
  rows.legal.select(1, 1).fill_(false);
  const Tensor logits = FromJson(item["logits"]);
  ExpectLoss(BinnedLoss(logits, rows), logits, golden["binned_ev_no_legal_down"]);
}

TEST(GoldenTwenty48Net, TsadLosses) {
  for (const Json& batch : Golden("tsad.json")["batches"]) {
    TargetRows rows;
    std::vector<float> legal;
    std::vector<int64_t> moves;
    for (const Json& position : batch["positions"]) {
      Flatten(position["legal"], legal);
      moves.push_back(position["move"].get<int64_t>());
    }
    rows.legal = torch::tensor(legal).reshape({-1, 4}).to(torch::kBool);
    rows.moves = torch::tensor(moves);
    for (const Json& result : batch["results"]) {
      TargetOptions options;
      FieldsOf(options).ReadTree(nlohmann::ordered_json::parse(result["config"].dump()),
                                 "tsad.json");
      rows.soft = FromJson(result["policy_targets"]);
      const Tensor logits = FromJson(batch["student_logits"]).requires_grad_();
      const Losses losses = TsadLoss(logits, rows, options);
      EXPECT_NEAR(losses.kd.item<double>(), result["kd_loss"].get<double>(), 1e-5);
      if (!result["aux_ce_loss"].is_null()) {
        EXPECT_NEAR(losses.aux.item<double>(), result["aux_ce_loss"].get<double>(), 1e-5);
      }
      EXPECT_LT(Apart(losses.kl, FromJson(result["kl_per_sample"])), 1e-5);
      ExpectLoss(losses, logits, result);
    }
  }
}

// The document's direction has no recorded results: it is 0 only where both agree, and asks for
// what the teacher's targets say.
TEST(GoldenTwenty48Net, TheOtherDirectionLeadsToTheSameAnswer) {
  TargetRows rows;
  rows.legal = torch::tensor({true, true, true, false}).reshape({1, 4});
  rows.moves = torch::tensor({int64_t{0}});
  rows.soft = torch::tensor({0.5F, 0.3F, 0.2F, 0.0F}).reshape({1, 4});
  const TargetOptions options = {.tsad_kl = KlDirection::kStudentTeacher};
  Tensor logits = torch::zeros({1, 4}).requires_grad_();
  for (int i = 0; i < 500; ++i) {
    const Tensor loss = TsadLoss(logits, rows, options).total;
    EXPECT_GE(loss.item<double>(), -1e-6);
    loss.backward();
    const torch::NoGradGuard no_grad;
    logits -= logits.grad();
    logits.mutable_grad().zero_();
  }
  const Tensor student = (logits + torch::tensor({0.F, 0.F, 0.F, -1e9F})).softmax(1);
  EXPECT_LT(Apart(student, rows.soft), 1e-4);
}

}  // namespace
}  // namespace kibitz::twenty48
