#include "students/policy/play/onnx.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <numbers>
#include <string>

#include "students/policy/data/move_planes.h"
#include "students/policy/data/net_config.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {
namespace {

using io::OnnxGraph;
using io::OnnxType;

class CnnExport {
 public:
  CnnExport(const io::StateDict& weights, const NetConfig& config, OnnxGraph& graph)
      : weights_(weights), config_(config), graph_(graph) {}

  std::string Run() {
    const int64_t channels = config_.hidden_channels;
    std::string x = Gelu(Conv(Inputs(), "layers.0", config_.form().channels()));
    for (int i = 0; i < config_.num_layers; ++i) {
      const std::string name = fmt::format("layers.{}.", i + 2);
      const std::string y =
          Gelu(Conv(Norm(x, name + "ln1", {channels, 8, 8}), name + "conv1", channels));
      const std::string z =
          Gelu(Conv(Norm(y, name + "ln2", {channels, 8, 8}), name + "conv2", channels));
      x = graph_.Node("Add", {x, z});
    }
    x = Norm(graph_.Node("Flatten", {x}), "out_ln", {channels * 64});
    const int64_t moves = config_.num_moves;
    if (config_.HasPlanes()) return Planes(x);
    return graph_.Linear(x, "output", weights_.Floats("output.weight", {moves, channels * 64}),
                         {moves, channels * 64}, weights_.Floats("output.bias", {moves}));
  }

 private:
  // x: (B, C * 64), channel by channel.
  std::string Planes(const std::string& x) {
    const int64_t channels = config_.hidden_channels;
    const std::string squares = graph_.Node("Transpose", {graph_.Reshape(x, {-1, channels, 64})},
                                            {{"perm", std::vector<int64_t>{0, 2, 1}}});
    const std::string weight = graph_.Node(
        "Transpose",
        {graph_.Add("output.weight", weights_.Floats("output.weight", {2 * kMovePlanes, channels}),
                    {2 * kMovePlanes, channels})});
    const std::string planes = graph_.Reshape(graph_.Node("MatMul", {squares, weight}),
                                              {-1, int64_t{64} * 2 * kMovePlanes});
    std::vector<int64_t> from;
    std::vector<int64_t> to;
    for (const MovePlane& move : MovePlanes()) {
      from.push_back(int64_t{move.from} * 2 * kMovePlanes + move.plane);
      to.push_back((int64_t{move.to} * 2 + 1) * kMovePlanes + move.plane);
    }
    const auto read = [&](const char* name, const std::vector<int64_t>& rows) {
      const std::string at = graph_.AddInts(name, rows);
      return graph_.Node("Gather", {planes, at}, {{"axis", int64_t{1}}});
    };
    const std::string sum = graph_.Node("Add", {read("moved_from", from), read("moved_to", to)});
    const std::string bias = graph_.Add(
        "output.bias", weights_.Floats("output.bias", {config_.num_moves}), {config_.num_moves});
    return graph_.Node("Add", {sum, bias});
  }

  // Meta is the same on every square.
  std::string Inputs() {
    const std::vector<float> ones(64, 1.0F);
    const std::string cells = graph_.Reshape("meta", {-1, config_.form().metas(), 1, 1});
    const std::string meta = graph_.Node("Mul", {cells, graph_.Add("board", ones, {1, 1, 8, 8})});
    std::vector<std::string> parts = {"planes", meta};
    if (config_.attack_planes) parts.emplace_back("attacks");
    return graph_.Node("Concat", parts, {{"axis", int64_t{1}}});
  }

  std::string Conv(const std::string& x, const std::string& name, int64_t inputs) {
    const int64_t outputs = config_.hidden_channels;
    const int64_t k = config_.kernel_size;
    const std::string weight =
        graph_.Add(name + ".weight", weights_.Floats(name + ".weight", {outputs, inputs, k, k}),
                   {outputs, inputs, k, k});
    const std::string bias =
        graph_.Add(name + ".bias", weights_.Floats(name + ".bias", {outputs}), {outputs});
    return graph_.Node(
        "Conv", {x, weight, bias},
        {{"kernel_shape", std::vector<int64_t>{k, k}}, {"pads", std::vector<int64_t>(4, k / 2)}});
  }

  std::string Gelu(const std::string& x) {
    const std::string scaled =
        graph_.Node("Mul", {x, graph_.AddNumber(static_cast<float>(1 / std::numbers::sqrt2))});
    const std::string sum = graph_.Node("Add", {graph_.Node("Erf", {scaled}), graph_.AddNumber(1)});
    return graph_.Node("Mul", {graph_.Node("Mul", {x, sum}), graph_.AddNumber(0.5F)});
  }

  std::string Norm(const std::string& x, const std::string& name,
                   const std::vector<int64_t>& shape) {
    const std::string scale =
        graph_.Add(name + ".weight", weights_.Floats(name + ".weight", shape), shape);
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 1);
    if (config_.norm == NormKind::kRmsNorm) {
      return graph_.RmsNorm(x, scale, std::numeric_limits<float>::epsilon(), axes);
    }
    // Not LayerNormalization: onnxruntime computes its variance as E[x^2] - E[x]^2, which loses
    // digits in trained networks.
    const std::string mean =
        graph_.Node("ReduceMean", {x}, {{"axes", axes}, {"keepdims", int64_t{1}}});
    const std::string bias =
        graph_.Add(name + ".bias", weights_.Floats(name + ".bias", shape), shape);
    return graph_.Node("Add",
                       {graph_.RmsNorm(graph_.Node("Sub", {x, mean}), scale, 1e-5F, axes), bias});
  }

  const io::StateDict& weights_;
  const NetConfig& config_;
  OnnxGraph& graph_;
};

std::string MlpLogits(const io::StateDict& weights, const NetConfig& config, OnnxGraph& graph) {
  std::string x =
      graph.Node("Concat", {graph.Node("Flatten", {"planes"}), "meta"}, {{"axis", int64_t{1}}});
  int64_t width = kFlatInputs;
  for (int i = 0; i <= config.num_layers; ++i) {
    const int64_t next = i == config.num_layers ? config.num_moves : config.hidden_size;
    const std::string name = fmt::format("net.{}", 2 * i);
    if (i > 0) x = graph.Node("Relu", {x});
    x = graph.Linear(x, name, weights.Floats(name + ".weight", {next, width}), {next, width},
                     weights.Floats(name + ".bias", {next}));
    width = next;
  }
  return x;
}

std::string MovesText(const io::ModelFile& file, const NetConfig& config) {
  const std::string beside = std::filesystem::path(file.place).parent_path() / "vocab.npy";
  const Vocabulary vocabulary =
      std::filesystem::exists(beside) ? Vocabulary::Read(beside) : Vocabulary::Full();
  std::string text;
  for (int i = 0; i < std::min(vocabulary.size(), config.num_moves); ++i) {
    text += (i > 0 ? " " : "") + vocabulary[i].Text();
  }
  return text;
}

}  // namespace

OnnxGraph OnnxOf(const io::ModelFile& file) {
  const NetConfig config = ConfigOf(file);
  OnnxGraph graph("policy");
  graph.AddInput("planes", OnnxType::kFloat, {-1, kPlanes, 8, 8});
  graph.AddInput("meta", OnnxType::kFloat, {-1, config.form().metas()});
  if (config.attack_planes) {
    graph.AddInput("attacks", OnnxType::kFloat, {-1, chess::kAttackPlanes, 8, 8});
  }
  const std::string logits = config.IsCnn() ? CnnExport(file.weights, config, graph).Run()
                                            : MlpLogits(file.weights, config, graph);
  graph.AddOutput("logits", logits, OnnxType::kFloat, {-1, config.num_moves});
  NetConfig sizes = config;
  graph.AddMetadata("kind", "policy");
  graph.AddMetadata("config", FieldsOf(sizes).ToTree().dump());
  graph.AddMetadata("flip_board", config.flip_board ? "1" : "0");
  graph.AddMetadata("moves", MovesText(file, config));
  return graph;
}

}  // namespace kibitz::policy
