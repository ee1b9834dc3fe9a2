// The policy's networks against recorded results: logits, training steps, legal distributions; the
// torch modules in both forms, and the torch-free runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/tables/npy.h"
#include "io/weights/safetensors.h"
#include "learn/adamw.h"
#include "learn/weights.h"
#include "students/policy/data/planes.h"
#include "students/policy/net/loss.h"
#include "students/policy/net/policy_net.h"
#include "students/policy/play/player.h"
#include "tests/support/golden_kit.h"

namespace kibitz::policy {
namespace {

using kibitz::testing::Compared;
using kibitz::testing::GoldenPath;
using kibitz::testing::PolicyModels;
using kibitz::testing::ReadWhole;
using torch::Tensor;
using Json = nlohmann::json;

constexpr double kTolerance = 1e-4;

std::string Models(const std::string& name) { return GoldenPath("policy/models/" + name); }

Tensor Array(const std::string& path) {
  return learn::FromFile(io::NpyFile::Open(path).AsTensor());
}

std::vector<PackedPosition> Positions() {
  const io::NpyFile planes = io::NpyFile::Open(Models("input_planes.npy"));
  const io::NpyFile meta = io::NpyFile::Open(Models("input_meta.npy"));
  std::vector<PackedPosition> positions;
  for (size_t i = 0; i < planes.rows(); ++i) {
    const auto* p = reinterpret_cast<const uint8_t*>(planes.bytes().data()) + i * kPlaneBytes;
    const auto* m = reinterpret_cast<const int8_t*>(meta.bytes().data()) + i * kMeta;
    positions.push_back(*FromPlanes(std::span<const uint8_t, kPlaneBytes>(p, kPlaneBytes),
                                    std::span<const int8_t, kMeta>(m, kMeta)));
  }
  return positions;
}

Tensor Inputs(const NetConfig& config) {
  const std::vector<PackedPosition> positions = Positions();
  Tensor inputs = torch::empty({static_cast<int64_t>(positions.size()), config.form().size()});
  for (size_t i = 0; i < positions.size(); ++i) {
    WriteInputs(positions[i], config.form(), inputs[static_cast<int64_t>(i)].data_ptr<float>());
  }
  return inputs;
}

double Difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(GoldenPolicyNet, Logits) {
  const torch::NoGradGuard no_grad;
  for (const std::string& folder : PolicyModels()) {
    const NetConfig config = ConfigOf(io::ReadModel(folder));
    const Tensor expected = Array(folder + "/logits.npy");
    for (const char* file : {"model.safetensors", "state_dict.pt"}) {
      const PolicyNet net = MakeNet(config);
      LoadWeightsInto(*net, folder + "/" + file);
      uint64_t parameters = 0;
      for (const Tensor& tensor : net->parameters())
        parameters += static_cast<uint64_t>(tensor.numel());
      EXPECT_EQ(parameters, CountParameters(config)) << folder;
      for (Form form : {Form::kPlain, Form::kFast}) {
        EXPECT_LT(Difference(net->Logits(Inputs(config), form), expected), kTolerance)
            << folder << " " << file << (form == Form::kPlain ? " plain" : " fast");
      }
    }
  }
}

TEST(GoldenPolicyNet, RuntimeWithoutTorch) {
  for (const std::string& folder : PolicyModels()) {
    const Tensor expected = Array(folder + "/logits.npy");
    const std::vector<PackedPosition> positions = Positions();
    for (int threads : {1, 3}) {
      Model model(io::ReadModel(folder), {.threads = threads});
      Tensor logits =
          torch::zeros({static_cast<int64_t>(positions.size()), model.config().num_moves});
      model.Answer(positions, logits.data_ptr<float>());
      EXPECT_LT(Difference(logits, expected), kTolerance) << folder;
      // One by one they are the very same numbers.
      for (size_t i = 0; i < positions.size(); ++i) {
        Tensor alone = torch::zeros({model.config().num_moves});
        model.Answer(std::span(&positions[i], 1), alone.data_ptr<float>());
        EXPECT_TRUE(torch::equal(alone, logits[static_cast<int64_t>(i)])) << folder << " " << i;
      }
    }
  }
}

// The runtime's convolutions, by Winograd's way and by what each square sees, beside the plain
// form.
TEST(GoldenPolicyNet, RuntimeOfAnyWindow) {
  const torch::NoGradGuard no_grad;
  const kibitz::testing::TempFolder folder;
  const std::vector<PackedPosition> positions = Positions();
  for (int kernel : {1, 3, 5}) {
    for (int channels : {5, 12, 40}) {
      NetConfig config;
      config.hidden_channels = channels;
      config.num_layers = 3;
      config.kernel_size = kernel;
      config.flip_board = kernel >= 3;
      config.attack_planes = kernel == 5 || (kernel == 3 && channels == 40);
      config.norm = channels == 5 ? NormKind::kRmsNorm : NormKind::kLayerNorm;
      config.head = channels == 40 ? HeadKind::kPlanes : HeadKind::kFlat;
      const PolicyNet net = MakeNet(config);
      learn::InitWeights(*net, 1);
      if (channels == 40) {
        learn::FillNormal(net->named_parameters()["output.weight"], 1, "weight");
        net->named_parameters()["output.weight"].mul_(0.1);
        learn::FillNormal(net->named_parameters()["output.bias"], 1, "bias");
      }
      for (Tensor& parameter : net->parameters()) parameter.add_(parameter.sin(), 0.3);
      WriteFileAtomically(folder.path() + "/config.json", FieldsOf(config).ToTree().dump());
      io::WriteSafetensors(folder.path() + "/model.safetensors", {learn::WeightsOf(*net)});
      Model model(io::ReadModel(folder.path()), {.threads = 2});
      Tensor logits = torch::zeros({static_cast<int64_t>(positions.size()), config.num_moves});
      model.Answer(positions, logits.data_ptr<float>());
      EXPECT_LT(Difference(logits, net->Logits(Inputs(config), Form::kPlain)), kTolerance)
          << kernel << " " << channels;
    }
  }
}

// Four steps of AdamW on the recorded batch, in both forms and with labels written out or not.
void ExpectSteps(const std::string& folder, Form form, bool dense) {
  const NetConfig config = ConfigOf(io::ReadModel(folder));
  const Json golden = Json::parse(ReadWhole(folder + "/training.json"));
  const Tensor labels = Array(Models("soft_targets_T50.npy"));
  const Tensor inputs = Inputs(config);
  TargetBatch batch;
  const Tensor where = labels.nonzero();  // (E, 2)
  batch.rows = where.select(1, 0).contiguous();
  batch.moves = where.select(1, 1).contiguous();
  batch.shares = labels.index({batch.rows, batch.moves}).to(torch::kFloat32);
  batch.best = labels.argmax(1);
  const PolicyNet net = MakeNet(config);
  LoadWeightsInto(*net, folder);
  learn::LoopOptions options;
  options.beta1 = golden["betas"][0];
  options.beta2 = golden["betas"][1];
  options.epsilon = golden["eps"];
  options.weight_decay = golden["weight_decay"];
  learn::AdamW optimizer(net->parameters(), options);
  const size_t steps = golden["loss_before_each_step"].size();
  for (size_t step = 0; step < steps; ++step) {
    optimizer.ZeroGradients();
    const Tensor logits = net->Logits(inputs, form);
    const Tensor loss =
        dense ? DenseSoftLoss(logits, labels.to(torch::kFloat32)) : SoftLoss(logits, batch);
    EXPECT_NEAR(loss.item<double>(), golden["loss_before_each_step"][step].get<double>(),
                kTolerance);
    EXPECT_NEAR(CountHits(logits, batch.best).first / static_cast<double>(logits.size(0)),
                golden["top1_before_each_step"][step].get<double>(), 1e-9);
    loss.backward();
    EXPECT_NEAR(learn::ClipGradients(net->parameters(), 1),
                golden["grad_norm_before_clip"][step].get<double>(), 1e-3);
    optimizer.Step(golden["lr"].get<double>());
  }
  const torch::NoGradGuard no_grad;
  EXPECT_LT(Difference(net->Logits(inputs, form), Array(folder + "/logits_after_4_steps.npy")),
            5e-4)
      << folder;
}

TEST(GoldenPolicyNet, TrainingSteps) {
  for (const std::string& folder : PolicyModels("training.json")) {
    for (Form form : {Form::kPlain, Form::kFast}) {
      for (bool dense : {true, false}) ExpectSteps(folder, form, dense);
    }
  }
}

// A checkpoint of the reference's own training: names carry "_orig_mod.".
TEST(GoldenPolicyNet, CheckpointBundle) {
  const torch::NoGradGuard no_grad;
  for (const std::string& folder : PolicyModels("checkpoint_bundle.pt")) {
    const std::string path = folder + "/checkpoint_bundle.pt";
    const NetConfig config = ConfigOf(io::ReadModel(path));
    const PolicyNet net = MakeNet(config);
    LoadWeightsInto(*net, path);
    EXPECT_LT(Difference(net->Logits(Inputs(config)), Array(folder + "/logits_after_4_steps.npy")),
              kTolerance);
  }
}

// Probabilities over the legal moves, castling looked up as king takes rook.
TEST(GoldenPolicyNet, LegalDistribution) {
  int positions = 0;
  for (const std::string& folder : PolicyModels("legal_distribution.json")) {
    Player player({.path = folder, .threads = 2});
    for (const Json& item : Json::parse(ReadWhole(folder + "/legal_distribution.json"))) {
      const chess::Board board = *chess::ParseFen(item["fen"].get<std::string>());
      std::map<std::string, double> ours;
      for (const LikelyMove& move : player.Predict(board).moves) {
        ours[ToText(board, move.move, chess::MoveStyle::kUciRook)] = move.probability;
      }
      const Json& words = item["lookup_king_takes_rook"];
      ASSERT_EQ(ours.size(), words.size());
      for (size_t i = 0; i < words.size(); ++i) {
        EXPECT_NEAR(ours.at(words[i].get<std::string>()),
                    item["prob_king_takes_rook_lookup"][i].get<double>(), 1e-5)
            << item["fen"] << " " << words[i];
      }
      ++positions;
    }
  }
  Compared(positions, "positions");
}

}  // namespace
}  // namespace kibitz::policy
