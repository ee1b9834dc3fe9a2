// The decoder's network beside the public reference: hidden states, losses, gradients, one step.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "learn/buckets.h"
#include "learn/weights.h"
#include "students/decoder/net/loss.h"
#include "tests/support/golden_kit.h"

namespace kibitz::decoder {
namespace {

using nlohmann::json;
using testing::Compared;
using testing::GoldenPath;

json Parsed(const std::string& name) {
  return json::parse(std::ifstream(GoldenPath("decoder/" + name)));
}

torch::Tensor Golden(const std::string& name) {
  return learn::FromFile(io::NpyFile::Open(GoldenPath("decoder/" + name)).AsTensor());
}

// The trained small model.
DecoderNet Tiny() {
  const std::string path = GoldenPath("decoder/tiny.pt");
  const io::Value root = io::ReadPt(path);
  NetConfig config;
  Fields fields = FieldsOf(config);
  nlohmann::ordered_json tree;
  for (const std::string& name : fields.Names()) {
    // Ours, not the reference's.
    if (name.starts_with("square_")) continue;
    if (name.starts_with("board_") || name == "mean_values" || name.ends_with("_votes") ||
        name == "separate_lines")
      continue;
    const io::Value& value = root.Get("config.model." + name);
    tree[name] = value.Is(io::Value::Kind::kInt) ? json(value.AsInt()) : json(value.AsDouble());
  }
  fields.ReadTree(tree, path);
  DecoderNet net(config);
  learn::LoadWeights(*net, io::StateDict::From(root, path), path);
  return net;
}

double Difference(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

TEST(GoldenDecoderNetTest, BucketsAndFourier) {
  const torch::NoGradGuard no_grad;
  DecoderNet net = Tiny();
  const int64_t buckets = net->config.n_buckets;
  EXPECT_LT(Difference(learn::GaussianBuckets(buckets, net->config.wl_sigma),
                       Golden("forward/wl_bucket_centers.npy")),
            1e-6);
  EXPECT_LT(Difference(learn::UniformBuckets(buckets), Golden("forward/d_bucket_centers.npy")),
            1e-7);
  const auto encoded = net->fourier_encoder(Golden("forward/fourier_input.npy"));
  EXPECT_LT(Difference(encoded, Golden("forward/fourier_output.npy")), 1e-5);
}

// The rows of hidden states (1, S, D) at the listed positions.
torch::Tensor RowsAt(const torch::Tensor& hidden, const json& positions) {
  const auto list = torch::tensor(positions.get<std::vector<int64_t>>(), torch::kInt64);
  return hidden[0].index_select(0, list);
}

// The tokens and values of one case of forward/.
struct Case {
  torch::Tensor ids;  // (1, S)
  ValueInputs values;
};

Case ReadCase(const std::string& name) {
  const auto row = [&](const std::string& what) {
    return Golden("forward/" + name + "." + what + ".npy").reshape({1, -1});
  };
  return {.ids = row("ids"),
          .values = {.wl_values = row("wl_values"),
                     .d_values = row("d_values"),
                     .wl_positions = row("wl_positions").to(torch::kBool),
                     .d_positions = row("d_positions").to(torch::kBool)}};
}

TEST(GoldenDecoderNetTest, HiddenStates) {
  const torch::NoGradGuard no_grad;
  DecoderNet net = Tiny();
  const json cases = Parsed("forward/forward.json");
  for (const auto& [name, about] : cases.items()) {
    SCOPED_TRACE(name);
    const auto golden = [&, prefix = "forward/" + name + "."](const std::string& what) {
      return Golden(prefix + what + ".npy");
    };
    const auto [ids, values] = ReadCase(name);
    const auto causal =
        net->forward(ids, CausalBias(ids.size(1)), values, Pass::kCausal);  // (1, S, D)
    const auto prefix = net->forward(ids, PrefixBias(golden("block_id").reshape({1, -1})), values,
                                     Pass::kPrefix);  // (1, S, D)
    EXPECT_LT(Difference(causal, golden("h_causal").reshape(causal.sizes())), 1e-4);
    EXPECT_LT(Difference(prefix, golden("h_prefix").reshape(prefix.sizes())), 1e-4);
    const auto expect_logits = [&](const std::string& what, const torch::Tensor& logits) {
      if (logits.size(0) == 0) return;
      EXPECT_LT(Difference(logits, golden(what).reshape(logits.sizes())), 5e-4) << what;
    };
    expect_logits("board_logits", net->board_head(causal[0]));
    expect_logits("policy_logits", net->policy_head(RowsAt(prefix, about["policy_positions"])));
    expect_logits("thinking_policy_logits",
                  net->thinking_policy_head(RowsAt(prefix, about["thinking_positions"])));
    expect_logits("wl_logits", net->wl_head(RowsAt(prefix, about["wl_head_positions"])));
    expect_logits("d_logits", net->d_head(RowsAt(prefix, about["d_head_positions"])));
  }
}

TEST(GoldenDecoderNetTest, LayerByLayer) {
  const torch::NoGradGuard no_grad;
  DecoderNet net = Tiny();
  int compared = 0;
  const json cases = Parsed("forward/forward.json");
  for (const auto& [name, about] : cases.items()) {
    const std::string prefix = "forward/" + name + ".";
    const auto there = [&](const std::string& what) {
      return testing::Exists(GoldenPath("decoder/" + prefix + what + ".npy"));
    };
    if (!there("embedding") || !there("causal_after_layer0")) continue;
    const auto [ids, values] = ReadCase(name);
    auto x = net->Embed(ids, values, Pass::kCausal);
    EXPECT_LT(Difference(x, Golden(prefix + "embedding.npy").reshape(x.sizes())), 1e-6) << name;
    for (size_t i = 0; i < net->layers->size(); ++i) {
      x = net->layers[i]->as<learn::TransformerLayer>()->forward(x, CausalBias(ids.size(1)),
                                                                 net->rotary);
      const auto golden = Golden(fmt::format("{}causal_after_layer{}.npy", prefix, i));
      EXPECT_LT(Difference(x, golden.reshape(x.sizes())), 1e-4) << name << " " << i;
      ++compared;
    }
  }
  Compared(compared, "layers");
}

// One padded batch of the kit, with its rows' padding taken off again.
Batch ReadBatch(const std::string& folder) {
  const auto read = [&](const std::string& name) { return Golden(folder + "/" + name + ".npy"); };
  const auto optional = [&](const std::string& name) {
    const bool there = testing::Exists(GoldenPath("decoder/" + folder + "/" + name + ".npy"));
    return there ? read(name) : torch::zeros_like(read("move_mask"));
  };
  const auto ids = read("input_ids").to(torch::kInt32);
  const auto targets = read("board_target_ids").to(torch::kInt32);
  const auto block_id = read("block_id").to(torch::kInt32);
  const auto move_targets = read("move_target_ids").to(torch::kInt32);
  const auto final_moves = read("move_mask").to(torch::kBool);
  const auto thinking_moves = optional("thinking_move_mask").to(torch::kBool);
  const auto wl_positions = read("wl_positions").to(torch::kBool);
  const auto wl = read("wl_targets").to(torch::kFloat32);
  const auto d = read("d_targets").to(torch::kFloat32);
  const auto valid = read("wdl_valid").to(torch::kBool);
  const auto reordered = optional("first_is_not_best").to(torch::kBool).flatten();
  std::vector<Sequence> sequences;
  for (int64_t b = 0; b < ids.size(0); ++b) {
    Sequence sequence;
    const auto row = ids.accessor<int32_t, 2>()[b];
    for (int64_t i = 0; i < ids.size(1) && row[i] != kPad; ++i) {
      const auto position = static_cast<int32_t>(i);
      sequence.ids.push_back(static_cast<TokenId>(row[i]));
      const bool thinking = thinking_moves[b][i].item<bool>();
      if (thinking || final_moves[b][i].item<bool>()) {
        sequence.moves.push_back({.position = position,
                                  .move = move_targets[b][i].item<int32_t>(),
                                  .kind = thinking ? MoveKind::kThinking : MoveKind::kFinal});
        sequence.thinking |= thinking;
      }
      // The documents' rule: tokens before the first move have no board target.
      const auto target = static_cast<int8_t>(targets[b][i].item<int32_t>());
      sequence.board_targets.push_back(sequence.moves.empty() ? int8_t{kIgnore} : target);
      if (wl_positions[b][i].item<bool>()) {
        sequence.values.push_back({position, wl[b][i].item<float>(), d[b][i + 1].item<float>(),
                                   valid[b][i].item<bool>()});
      }
      const auto block = block_id[b][i].item<int32_t>();
      if (i > 0 && block == block_id[b][i - 1].item<int32_t>()) {
        if (sequence.blocks.empty() || sequence.blocks.back().end != position) {
          sequence.blocks.push_back({position - 1, position});
        }
        sequence.blocks.back().end = position + 1;
      }
    }
    sequence.first_is_not_best = sequence.thinking && reordered[b].item<bool>();
    sequences.push_back(std::move(sequence));
  }
  return Pack(sequences);
}

enum class Version { kPlain, kPacked };

LossAndMetrics LossOf(Version version, DecoderNet& net, const Batch& batch,
                      const LossOptions& options, int32_t padded_length) {
  return version == Version::kPlain ? PlainLoss(net, batch, options, padded_length)
                                    : PackedLoss(net, batch, options);
}

void ExpectNear(double found, double expected, double relative, const std::string& what) {
  EXPECT_NEAR(found, expected, relative * std::abs(expected) + 1e-9) << what;
}

void ExpectMetrics(const Metrics& metrics, Phase phase, const json& expected) {
  std::map<std::string, double> found;
  for (const auto& [name, value] : NamedValues(metrics, phase)) found[name] = value;
  for (const auto& [name, value] : expected["losses"].items()) {
    ASSERT_TRUE(found.contains(name + "_loss")) << name;
    ExpectNear(found[name + "_loss"], value, 1e-4, name);
  }
  for (const auto& [name, value] : expected["metrics"].items()) {
    // What newer code logs and the documents do not name.
    if (name.ends_with("_mse") || name.ends_with("_excluding_structural")) continue;
    ASSERT_TRUE(found.contains(name)) << name;
    ExpectNear(found[name], value, 1e-4, name);
  }
  const json& counts = expected["counts"];
  EXPECT_EQ(metrics.board_acc.count, counts["board_mask"]);
  EXPECT_EQ(metrics.board_total_acc.count, counts["blocks_all"]);
  EXPECT_EQ(metrics.board_total_acc_real_blocks.count, counts["blocks_real"]);
  EXPECT_EQ(metrics.wl_loss.count, counts["wl_terms"]);
  EXPECT_EQ(metrics.d_loss.count, counts["d_terms"]);
}

void ExpectGradients(const DecoderNet& net, const json& expected) {
  for (const auto& parameter : net->named_parameters()) {
    const json& norm = expected.at(parameter.key());
    const auto& gradient = parameter.value().grad();
    EXPECT_EQ(gradient.defined(), !norm.is_null()) << parameter.key();
    if (!gradient.defined() || norm.is_null()) continue;
    ExpectNear(gradient.norm().item<double>(), norm, 1e-3, parameter.key());
  }
}

// Clips, steps, and compares every tensor's norm and how far it moved.
void ExpectStep(DecoderNet& net, const json& expected, const json& optimizer) {
  std::map<std::string, torch::Tensor> before;
  for (const auto& item : net->named_parameters()) before[item.key()] = item.value().clone();
  const double norm =
      torch::nn::utils::clip_grad_norm_(net->parameters(), optimizer["grad_clip_norm"]);
  ExpectNear(norm, expected["total_grad_norm_before_clip"], 1e-3, "norm of all gradients");
  torch::optim::AdamW adam(net->parameters(),
                           torch::optim::AdamWOptions(optimizer["lr"].get<double>())
                               .weight_decay(optimizer["weight_decay"])
                               .betas({optimizer["betas"][0], optimizer["betas"][1]})
                               .eps(optimizer["eps"]));
  adam.step();
  const torch::NoGradGuard no_grad;
  for (const auto& item : net->named_parameters()) {
    const std::string& name = item.key();
    const auto wide = item.value().to(torch::kFloat64);
    ExpectNear(before[name].to(torch::kFloat64).norm().item<double>(),
               expected["param_l2_before"][name], 1e-6, name + " before");
    ExpectNear(wide.norm().item<double>(), expected["param_l2_after"][name], 1e-6, name + " after");
    // Adam's first step is a sign: an element whose gradient is all rounding moves either way.
    ExpectNear((wide - before[name]).norm().item<double>(), expected["update_l2"][name], 1e-2,
               name + " moved");
  }
}

void ExpectLikeReference(Version version, Phase phase) {
  const json losses = Parsed("losses.json");
  const bool finetune = phase == Phase::kFinetune;
  const json& about = losses[finetune ? "finetune" : "pretrain"];
  const json& expected = finetune ? about["all_moves"] : about;
  const json& weights = about["weights"];
  LossOptions options;
  options.phase = phase;
  options.weights = {.final_move = weights[finetune ? "final_move" : "move"],
                     .thinking_move = finetune ? weights["thinking_move"].get<double>() : 0,
                     .board = weights["board"],
                     .wl = weights["wl"],
                     .d = weights["d"]};
  const Batch batch = ReadBatch(finetune ? "losses/finetune_batch" : "losses/pretrain_batch");
  DecoderNet net = Tiny();
  const LossAndMetrics result = LossOf(version, net, batch, options, about["max_seq_len"]);
  ExpectMetrics(result.metrics, phase, expected);
  result.loss.backward();
  ExpectGradients(net, expected["grad_l2"]);
  ExpectStep(net, expected, losses["optimizer"]);
}

TEST(GoldenDecoderNetTest, PlainFinetuneStep) {
  ExpectLikeReference(Version::kPlain, Phase::kFinetune);
}

TEST(GoldenDecoderNetTest, PlainPretrainStep) {
  ExpectLikeReference(Version::kPlain, Phase::kPretrain);
}

TEST(GoldenDecoderNetTest, PackedFinetuneStep) {
  ExpectLikeReference(Version::kPacked, Phase::kFinetune);
}

TEST(GoldenDecoderNetTest, PackedPretrainStep) {
  ExpectLikeReference(Version::kPacked, Phase::kPretrain);
}

void ExpectSameWeights(const DecoderNet& a, const DecoderNet& b) {
  const auto left = learn::WeightsOf(*a);
  const auto right = learn::WeightsOf(*b);
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].name, right[i].name);
    EXPECT_TRUE(torch::equal(learn::FromFile(left[i].tensor), learn::FromFile(right[i].tensor)));
  }
}

// The weights as a .pt file, in the order in which the golden file has them.
void WriteAsPt(const DecoderNet& net, const std::string& path) {
  const std::string source = GoldenPath("decoder/tiny.pt");
  const auto stored = io::StateDict::From(io::ReadPt(source), source);
  const auto weights = learn::WeightsOf(*net);
  ASSERT_EQ(weights.size(), stored.tensors().size());
  io::Value::Pairs pairs;
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].name, stored.tensors()[i].name);
    pairs.emplace_back(io::Value::String(weights[i].name), io::Value::Of(weights[i].tensor));
  }
  io::WritePt(path, io::Value::Dict({{io::Value::String("model_state_dict"),
                                      io::Value::Dict(std::move(pairs))}}));
}

TEST(GoldenDecoderNetTest, CheckpointsRoundTrip) {
  const testing::TempFolder folder;
  const DecoderNet net = Tiny();
  const std::string pt = folder.File("copy.pt");
  WriteAsPt(net, pt);
  DecoderNet from_pt(net->config);
  learn::LoadWeights(*from_pt, io::StateDict::From(io::ReadPt(pt), pt), pt);
  ExpectSameWeights(net, from_pt);

  const std::string safetensors = folder.File("copy.safetensors");
  io::WriteSafetensors(safetensors, {.tensors = learn::WeightsOf(*net)});
  DecoderNet from_safetensors(net->config);
  learn::LoadWeights(*from_safetensors,
                     io::StateDict(io::ReadSafetensors(safetensors).tensors, safetensors),
                     safetensors);
  ExpectSameWeights(net, from_safetensors);
}

TEST(GoldenDecoderNetTest, PythonReadsOurCheckpoint) {
  SKIP_WITHOUT_PYTHON("torch");
  const testing::TempFolder folder;
  const std::string pt = folder.File("copy.pt");
  WriteAsPt(Tiny(), pt);
  const auto ran =
      testing::RunCommand({testing::PythonWith("torch"), "-c",
                           "import sys, torch\n"
                           "a, b = (torch.load(p)['model_state_dict'] for p in sys.argv[1:])\n"
                           "assert list(a) == list(b)\n"
                           "assert all(torch.equal(a[k], b[k]) for k in a)\n"
                           "print(len(a))\n",
                           GoldenPath("decoder/tiny.pt"), pt});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, std::to_string(learn::WeightsOf(*Tiny()).size()) + "\n");
}

TEST(GoldenDecoderNetTest, LayoutOfAnUntrainedCheckpoint) {
  const json layout = Parsed("checkpoint_layout/full.json");
  const json& model = layout["config"]["model"];
  NetConfig config{.embed_dim = model["embed_dim"],
                   .num_heads = model["num_heads"],
                   .num_layers = model["num_layers"],
                   .max_seq_len = model["max_seq_len"],
                   .d_ff = model["d_ff"],
                   .n_buckets = model["n_buckets"],
                   .wl_sigma = model["wl_sigma"],
                   .value_hidden_size = model["value_hidden_size"],
                   .num_fourier_freq = model["num_fourier_freq"]};
  DecoderNet net(config);
  std::vector<std::string> names;
  for (const auto& item : net->named_parameters()) names.push_back(item.key());
  EXPECT_EQ(json(names), layout["parameter_order"]);
  const std::string path = GoldenPath("decoder/checkpoint_layout/full.pt");
  learn::LoadWeights(*net, io::StateDict::From(io::ReadPt(path), path), path);
  for (const io::NamedTensor& weight : learn::WeightsOf(*net)) {
    const json& about = layout["tensors"][weight.name];
    EXPECT_EQ(json(weight.tensor.shape), about["shape"]) << weight.name;
    const auto values = learn::FromFile(weight.tensor).to(torch::kFloat64);
    ExpectNear(values.norm().item<double>(), about["l2"], 1e-6, weight.name);
  }
}

}  // namespace
}  // namespace kibitz::decoder
