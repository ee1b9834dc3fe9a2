#include "oracles/lc0/residual_weights.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "oracles/lc0/planes.h"
#include "oracles/lc0/policy_index.h"

namespace kibitz::oracles {
namespace {

constexpr int64_t kSquares = 64;
constexpr int64_t kPolicyPlanes = 80;  // Of a convolutional head; 73 are used.

enum class Structure : int64_t {
  kClassical = 1,
  kSqueeze = 2,
  kClassicalWithHeads = 3,
  kSqueezeWithHeads = 4,
};
enum class Policy : int64_t { kClassical = 1, kConvolution = 2, kAttention = 3 };
enum class Value : int64_t { kClassical = 1, kWdl = 2 };

// The file's format numbers.
struct Format {
  int64_t input = 1;
  int64_t structure = 1;
  int64_t policy = 1;
  int64_t value = 1;
  int64_t activation = 0;
  int64_t blocks = 0;
  bool attention = false;
};

Format FormatOf(const io::ModelFile& file) {
  if (file.format != io::ModelFormat::kLc0) {
    throw Error("{}: found weights of another kind, expected an lc0 network (.pb.gz)", file.place);
  }
  const nlohmann::ordered_json& model = *file.Section("model");
  return {.input = model.at("input").get<int64_t>(),
          .structure = model.at("structure").get<int64_t>(),
          .policy = model.at("policy").get<int64_t>(),
          .value = model.at("value").get<int64_t>(),
          .activation = model.at("activation").get<int64_t>(),
          .blocks = model.at("blocks").get<int64_t>(),
          .attention = model.at("attention").get<bool>()};
}

// Old networks name their structure only: their heads are classical.
void CheckFormat(const std::string& path, Format& format) {
  constexpr std::string_view kRemedy =
      "residual networks with 112 classical planes run, such as the Maia networks";
  if (format.input != 1) {
    throw Error("{}: input format {}, expected 1 (112 classical planes); {}", path, format.input,
                kRemedy);
  }
  const auto structure = static_cast<Structure>(format.structure);
  if (structure < Structure::kClassical || structure > Structure::kSqueezeWithHeads) {
    throw Error("{}: network structure {} ({}), expected a residual network (1 to 4); {}", path,
                format.structure,
                format.structure == 5 ? "ONNX" : "an attention body or several heads", kRemedy);
  }
  if (structure == Structure::kClassical || structure == Structure::kSqueeze) {
    format.policy = static_cast<int64_t>(Policy::kClassical);
    format.value = static_cast<int64_t>(Value::kClassical);
  }
  if (format.policy != 1 && format.policy != 2) {
    throw Error("{}: policy format {}{}, expected 1 (classical) or 2 (convolution); {}", path,
                format.policy, format.policy == 3 ? " (attention)" : "", kRemedy);
  }
  if (format.value != 1 && format.value != 2) {
    throw Error("{}: value format {}, expected 1 (classical) or 2 (WDL); {}", path, format.value,
                kRemedy);
  }
  if (format.activation != 0 && format.activation != 1) {
    throw Error("{}: default activation {}, expected 0 (ReLU) or 1 (Mish); {}", path,
                format.activation, kRemedy);
  }
  if (format.attention) {
    throw Error("{}: found attention layers, expected a residual network; {}", path, kRemedy);
  }
}

// Makes layers of the file's lists, and checks that they are as long as the shapes need.
class Builder {
 public:
  explicit Builder(const io::StateDict& weights) : weights_(weights) {}

  // The batch norm is y = gamma * (x + bias - mean) / sqrt(variance + epsilon) + beta. The file
  // calls the variances bn_stddivs.
  nn::ConvWeights Conv(const std::string& name, int64_t inputs, int64_t outputs,
                       int64_t size) const {
    const int64_t taps = inputs * size * size;
    nn::ConvWeights conv{.inputs = inputs,
                         .outputs = outputs,
                         .size = size,
                         .weight = Floats(name + ".weights", outputs * taps),
                         .bias = FloatsOr(name + ".biases", outputs, 0)};
    if (weights_.Find(name + ".bn_stddivs") == nullptr) return conv;
    const auto variances = Floats(name + ".bn_stddivs", outputs);
    const auto means = FloatsOr(name + ".bn_means", outputs, 0);
    const auto gammas = FloatsOr(name + ".bn_gammas", outputs, 1);
    const auto betas = FloatsOr(name + ".bn_betas", outputs, 0);
    for (int64_t o = 0; o < outputs; ++o) {
      const auto i = static_cast<size_t>(o);
      const double scale = gammas[i] / std::sqrt(static_cast<double>(variances[i]) + 1e-5);
      conv.bias[i] = static_cast<float>(betas[i] - (means[i] - conv.bias[i]) * scale);
      for (int64_t t = 0; t < taps; ++t) {
        float& weight = conv.weight[static_cast<size_t>(o * taps + t)];
        weight = static_cast<float>(weight * scale);
      }
    }
    return conv;
  }

  nn::DenseWeights Dense(const std::string& weight, const std::string& bias, int64_t inputs) const {
    std::vector<float> biases = io::ToFloats(weights_.Get(bias));
    const auto outputs = static_cast<int64_t>(biases.size());
    return {.inputs = inputs,
            .outputs = outputs,
            .weight = Floats(weight, inputs * outputs),
            .bias = std::move(biases)};
  }

  // The filters of a convolution, by the number of its weights.
  int64_t Outputs(const std::string& name, int64_t inputs, int64_t size) const {
    const io::Tensor& tensor = weights_.Get(name + ".weights");
    const int64_t taps = inputs * size * size;
    if (tensor.shape.front() % taps != 0) {
      throw Error("{}: {} has {} weights, expected a multiple of {}", weights_.place(), name,
                  tensor.shape.front(), taps);
    }
    return tensor.shape.front() / taps;
  }

  bool Has(const std::string& name) const { return weights_.Find(name) != nullptr; }

 private:
  std::vector<float> Floats(const std::string& name, int64_t count) const {
    return weights_.Floats(name, {count});
  }
  std::vector<float> FloatsOr(const std::string& name, int64_t count, float missing) const {
    if (!Has(name)) return std::vector<float>(static_cast<size_t>(count), missing);
    return Floats(name, count);
  }

  const io::StateDict& weights_;
};

void BuildPolicy(const Builder& builder, Policy policy, int64_t filters,
                 nn::ResidualWeights& weights) {
  if (policy == Policy::kConvolution) {
    weights.policy = builder.Conv("policy1", filters, builder.Outputs("policy1", filters, 3), 3);
    weights.policy_planes = builder.Conv("policy", weights.policy.outputs, kPolicyPlanes, 3);
    return;
  }
  weights.policy = builder.Conv("policy", filters, builder.Outputs("policy", filters, 1), 1);
  weights.policy_dense = builder.Dense("ip_pol_w", "ip_pol_b", weights.policy.outputs * kSquares);
}

nn::ResidualBlockWeights BuildBlock(const Builder& builder, const std::string& name,
                                    int64_t filters) {
  nn::ResidualBlockWeights block;
  block.first = builder.Conv(name + ".conv1", filters, filters, 3);
  block.second = builder.Conv(name + ".conv2", filters, filters, 3);
  if (builder.Has(name + ".se.w1")) {
    nn::SqueezeWeights& squeeze = block.squeeze.emplace();
    squeeze.reduce = builder.Dense(name + ".se.w1", name + ".se.b1", filters);
    squeeze.expand = builder.Dense(name + ".se.w2", name + ".se.b2", squeeze.reduce.outputs);
  }
  return block;
}

nn::ResidualWeights Build(const io::StateDict& file, const Format& format) {
  const Builder builder(file);
  nn::ResidualWeights weights;
  weights.activation = format.activation == 1 ? nn::Activation::kMish : nn::Activation::kRelu;
  const int64_t filters = builder.Outputs("input", kLc0Planes, 3);
  weights.input = builder.Conv("input", kLc0Planes, filters, 3);
  for (int64_t i = 0; i < format.blocks; ++i) {
    weights.blocks.push_back(BuildBlock(builder, fmt::format("residual.{}", i), filters));
  }
  BuildPolicy(builder, static_cast<Policy>(format.policy), filters, weights);
  weights.value = builder.Conv("value", filters, builder.Outputs("value", filters, 1), 1);
  weights.value_hidden = builder.Dense("ip1_val_w", "ip1_val_b", weights.value.outputs * kSquares);
  weights.value_out = builder.Dense("ip2_val_w", "ip2_val_b", weights.value_hidden.outputs);
  return weights;
}

void CheckHeads(const std::string& path, const Lc0Weights& weights) {
  const int64_t outputs = weights.value_head == Lc0ValueHead::kWdl ? 3 : 1;
  if (weights.residual.value_out.outputs != outputs) {
    throw Error("{}: the value head has {} outputs, expected {}", path,
                weights.residual.value_out.outputs, outputs);
  }
  const auto& dense = weights.residual.policy_dense;
  if (dense && dense->outputs != kLc0Moves) {
    throw Error("{}: the policy head has {} outputs, expected {}", path, dense->outputs, kLc0Moves);
  }
}

}  // namespace

Lc0Weights Lc0WeightsOf(const io::ModelFile& file) {
  Format format = FormatOf(file);
  CheckFormat(file.place, format);
  if (file.weights.tensors().empty()) {
    throw Error("{}: found no weights; the file was cut short, download it again", file.place);
  }
  Lc0Weights weights = {.residual = Build(file.weights, format),
                        .value_head = format.value == static_cast<int64_t>(Value::kWdl)
                                          ? Lc0ValueHead::kWdl
                                          : Lc0ValueHead::kExpected};
  CheckHeads(file.place, weights);
  return weights;
}

std::string DescriptionOf(const Lc0Weights& weights) {
  const nn::ResidualWeights& net = weights.residual;
  const bool squeeze = !net.blocks.empty() && net.blocks.front().squeeze.has_value();
  return fmt::format("{} blocks of {} filters{}, {} policy, {}{}", net.blocks.size(),
                     net.input.outputs, squeeze ? " with squeeze-and-excitation" : "",
                     net.policy_planes ? "convolutional" : "classical",
                     weights.value_head == Lc0ValueHead::kWdl ? "WDL" : "expected value",
                     net.activation == nn::Activation::kMish ? ", Mish" : "");
}

}  // namespace kibitz::oracles
