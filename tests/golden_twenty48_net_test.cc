// The 2048 student's network and losses against recorded results.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "learn/weights.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::Compared;
using kibitz::testing::GoldenPath;
using kibitz::testing::ReadWhole;
using kibitz::testing::Twenty48Models;
using torch::Tensor;
using Json = nlohmann::json;

Json Golden(const std::string& name) {
  return Json::parse(ReadWhole(GoldenPath("twenty48/" + name)));
}

Tensor Array(const std::string& path) {
  return learn::FromFile(io::NpyFile::Open(path).AsTensor());
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
  int64_t compared = 0;
  for (const std::string& folder : Twenty48Models()) {
    for (const std::string& path : {folder, folder + "/model.safetensors", folder + "/model.pt"}) {
      Encoder net(ConfigOf(io::ReadModel(folder)));
      LoadWeightsInto(net, path);
      const torch::NoGradGuard no_grad;
      const Tensor tokens = Array(folder + "/tokens.npy");
      for (Form form : {Form::kPlain, Form::kFused}) {
        EXPECT_LT(Apart(net->Hidden(tokens, form), Array(folder + "/hidden.npy")), 1e-5);
        const Tensor logits = net->forward(tokens, form);
        EXPECT_LT(Apart(logits, Array(folder + "/logits.npy")), 1e-5);
        EXPECT_LT(Apart(logits.to(torch::kFloat64), Array(folder + "/logits_f64.npy")), 1e-5);
        if (logits.dim() == 3) {
          EXPECT_LT(Apart(logits.softmax(2), Array(folder + "/probs.npy")), 1e-5);
        }
      }
      compared += tokens.size(0);
    }
  }
  Compared(compared, "boards");
}

TEST(GoldenTwenty48Net, ABinnedInitLoadsIntoAPolicy) {
  const std::string path = Twenty48Models("binned_ev").at(0);
  NetConfig config = ConfigOf(io::ReadModel(path));
  config.head_type = HeadType::kActionPolicy;
  Encoder net(config);
  learn::InitWeights(*net, 1);
  const Tensor head = net->heads.policy_head->weight.clone();
  LoadWeightsInto(net, path);
  EXPECT_TRUE(torch::equal(net->heads.policy_head->weight, head));
  const torch::NoGradGuard no_grad;
  const Tensor tokens = Array(path + "/tokens.npy");
  EXPECT_LT(Apart(net->Hidden(tokens, Form::kPlain), Array(path + "/hidden.npy")), 1e-5);
  Compared(tokens.size(0), "boards");
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
  Compared(std::ssize(hard["legal"]) + std::ssize(head["legal"]), "rows");
}

// The batch that `what` names: "same batch as NAME but Down never legal: head loss is 0".
const Json& BatchNamedIn(const Json& golden, const std::string& what) {
  const Json* found = nullptr;
  size_t length = 0;
  for (const auto& [name, item] : golden.items()) {
    if (!item.contains("logits") || what.find(name) == std::string::npos) continue;
    if (name.size() > length) found = &item;
    length = std::max(length, name.size());
  }
  EXPECT_NE(found, nullptr) << what;
  return found == nullptr ? golden : *found;
}

TEST(GoldenTwenty48Net, BinnedLosses) {
  const Json golden = Golden("losses.json");
  int64_t rows = 0;
  for (const auto& [name, item] : golden.items()) {
    if (!name.starts_with("binned_ev_") || !item.contains("logits")) continue;
    const Tensor logits = FromJson(item["logits"]).requires_grad_();
    const Losses losses = BinnedLoss(logits, RowsFrom(item));
    ExpectLoss(losses, logits, item);
    losses.total.backward();
    EXPECT_LT(Apart(logits.grad(), Array(GoldenPath("twenty48/" + name + "_grad.npy"))), 1e-6);
    rows += logits.size(0);
  }
  if (golden.contains("binned_ev_no_legal_down")) {
    const Json& expected = golden["binned_ev_no_legal_down"];
    const Json& item = BatchNamedIn(golden, expected["what"].get<std::string>());
    TargetRows without = RowsFrom(item);
    without.legal.select(1, 1).fill_(false);
    const Tensor logits = FromJson(item["logits"]);
    ExpectLoss(BinnedLoss(logits, without), logits, expected);
    rows += logits.size(0);
  }
  Compared(rows, "rows");
}

TEST(GoldenTwenty48Net, TsadLosses) {
  const Json golden = Golden("tsad.json");
  int64_t compared = 0;
  for (const Json& batch : golden["batches"]) {
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
      compared += logits.size(0);
    }
  }
  Compared(compared, "rows");
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
