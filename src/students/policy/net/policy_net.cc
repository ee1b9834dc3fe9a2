#include "students/policy/net/policy_net.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "io/weights/state_dict.h"
#include "learn/fused.h"
#include "learn/precision.h"
#include "learn/recompute.h"
#include "learn/weights.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/vocabulary.h"
#include "students/policy/net/board_block.h"
#include "students/policy/net/board_conv.h"
#include "students/policy/net/mixed_block.h"
#include "students/policy/net/mixed_head.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;

constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kRmsNormEpsilon = std::numeric_limits<float>::epsilon();

// A place for modules whose names are numbers.
struct NumberedImpl : torch::nn::Module {};
TORCH_MODULE(Numbered);

torch::nn::Conv2d MakeConv(int64_t inputs, const NetConfig& config) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, config.hidden_channels, config.kernel_size)
          .padding(config.kernel_size / 2));
}

// (B, 64, C) to (B, C * 64), channel by channel, and the gradient back to memory in the order that
// all functions before it work in.
struct ChannelByChannel : torch::autograd::Function<ChannelByChannel> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) {
    return x.transpose(1, 2).flatten(1).contiguous();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    const Tensor& gradient = gradients[0];
    return {gradient.view({gradient.size(0), -1, 64}).transpose(1, 2).contiguous()};
  }
};

Tensor Convolved(torch::nn::Conv2d& conv, const Tensor& x) {
  return BoardConv(x, conv->weight, conv->bias);
}

}  // namespace

BoardNormImpl::BoardNormImpl(NormKind norm_kind, std::vector<int64_t> shape) : kind(norm_kind) {
  weight = register_parameter("weight", torch::ones(shape));
  if (kind == NormKind::kLayerNorm) bias = register_parameter("bias", torch::zeros(shape));
}

double BoardNormImpl::epsilon() const {
  return kind == NormKind::kLayerNorm ? kLayerNormEpsilon : kRmsNormEpsilon;
}

Tensor BoardNormImpl::Plain(const Tensor& x) {
  if (kind == NormKind::kLayerNorm) {
    return torch::layer_norm(x, weight.sizes(), weight, bias, kLayerNormEpsilon);
  }
  const Tensor flat = x.flatten(1);
  const Tensor scale = (flat.pow(2).mean(1, /*keepdim=*/true) + kRmsNormEpsilon).rsqrt();
  return (flat * scale * weight.flatten()).view(x.sizes());
}

Tensor BoardNormImpl::Fast(const Tensor& x) {
  const auto ordered = [&](const Tensor& tensor) {
    if (x.dim() == 2 || !tensor.defined()) return tensor;  // Channel by channel.
    return tensor.view({-1, 64}).t().flatten();            // (64 C)
  };
  return FusedNorm(x.flatten(1), ordered(weight), ordered(bias), epsilon()).view(x.sizes());
}

namespace {

// The fused layers know the window that nearly all networks have.
bool IsFused(const torch::nn::Conv2d& conv) { return conv->weight.size(3) == 3; }

LayerTensors LayerOf(const BoardNorm& norm, const torch::nn::Conv2d& conv) {
  return {.norm_weight = norm->weight,
          .norm_bias = norm->bias,
          .weight = conv->weight,
          .bias = conv->bias,
          .epsilon = norm->epsilon()};
}

}  // namespace

ResidualBlockImpl::ResidualBlockImpl(const NetConfig& config) {
  const int64_t width = config.hidden_channels;
  ln1 = register_module("ln1", BoardNorm(config.norm, std::vector<int64_t>{width, 8, 8}));
  conv1 = register_module("conv1", MakeConv(width, config));
  ln2 = register_module("ln2", BoardNorm(config.norm, std::vector<int64_t>{width, 8, 8}));
  conv2 = register_module("conv2", MakeConv(width, config));
}

Tensor ResidualBlockImpl::Run(const Tensor& x, Form form) {
  if (form == Form::kPlain) {
    const Tensor inner = torch::gelu(conv1->forward(ln1->Plain(x)));
    return x + torch::gelu(conv2->forward(ln2->Plain(inner)));
  }
  if (form == Form::kMixed) return MixedBlocks(x, {LayerOf(ln1, conv1), LayerOf(ln2, conv2)});
  if (IsFused(conv1)) return FusedBlock(x, LayerOf(ln1, conv1), LayerOf(ln2, conv2));
  const Tensor inner = torch::gelu(Convolved(conv1, ln1->Fast(x)));
  return x + torch::gelu(Convolved(conv2, ln2->Fast(inner)));
}

PlanesHeadImpl::PlanesHeadImpl(int64_t channels)
    : weight(register_parameter("weight", torch::zeros({2 * kMovePlanes, channels}))),
      bias(register_parameter("bias", torch::zeros({kFullVocabularySize}))) {
  std::vector<int64_t> from;
  std::vector<int64_t> to;
  for (const MovePlane& move : MovePlanes()) {
    from.push_back(int64_t{move.from} * 2 * kMovePlanes + move.plane);
    to.push_back((int64_t{move.to} * 2 + 1) * kMovePlanes + move.plane);
  }
  from_ = torch::tensor(from);
  to_ = torch::tensor(to);
}

Tensor PlanesHeadImpl::Run(const Tensor& x, Form form) {
  const int64_t channels = weight.size(1);
  const Tensor squares = x.view({-1, channels, 64}).transpose(1, 2).reshape({-1, channels});
  const Tensor product =
      form == Form::kPlain ? torch::mm(squares, weight.t()) : learn::Project(squares, {weight})[0];
  const Tensor planes = product.view({x.size(0), -1});  // (B, 64 * 2 planes)
  return planes.index_select(1, from_.to(x.device())) + planes.index_select(1, to_.to(x.device())) +
         bias;
}

namespace {

Form FormToRun(Form wanted, bool is_fused) {
  if (wanted == Form::kPlain || !is_fused) return wanted == Form::kPlain ? wanted : Form::kFast;
  const bool mixed = learn::CurrentPrecision() == learn::Precision::kBfloat16;
  return mixed ? Form::kMixed : wanted;
}

}  // namespace

PolicyCnn::PolicyCnn(const NetConfig& config) : NetModule(config) {
  Numbered layers = register_module("layers", Numbered());
  input = layers->register_module("0", MakeConv(config.form().channels(), config));
  for (int i = 0; i < config.num_layers; ++i) {
    blocks.push_back(layers->register_module(std::to_string(i + 2), ResidualBlock(config)));
  }
  const int64_t flat = int64_t{64} * config.hidden_channels;
  out_ln = register_module("out_ln", BoardNorm(config.norm, std::vector<int64_t>{flat}));
  if (config.HasPlanes()) {
    planes = register_module("output", PlanesHead(int64_t{config.hidden_channels}));
  } else {
    output = register_module("output", torch::nn::Linear(flat, config.num_moves));
  }
}

Tensor PolicyCnn::RunBlocks(Tensor x, Form form) {
  if (form == Form::kMixed && !recompute_blocks) {
    std::vector<LayerTensors> layers;
    for (const ResidualBlock& block : blocks) {
      layers.push_back(LayerOf(block->ln1, block->conv1));
      layers.push_back(LayerOf(block->ln2, block->conv2));
    }
    return MixedBlocks(x, layers);
  }
  for (ResidualBlock& block : blocks) {
    auto run = [block, form](const Tensor& in) mutable { return block->Run(in, form); };
    x = recompute_blocks ? learn::Recomputed(x, block->parameters(), run) : run(x);
  }
  return x;
}

Tensor PolicyCnn::Logits(const Tensor& inputs, Form wanted) {
  const Form form = FormToRun(wanted, IsFused(input));
  Tensor x = inputs.view({-1, 64, config.form().channels()});
  if (form == Form::kPlain) {
    x = x.transpose(1, 2).contiguous().view({x.size(0), -1, 8, 8});  // (B, I, 8, 8)
    x = torch::gelu(input->forward(x));                              // (B, C, 8, 8)
  } else if (form == Form::kMixed) {
    x = MixedInput(x, input->weight, input->bias);  // (N, 64, P, Cp)
  } else if (IsFused(input)) {
    x = FusedInput(x, input->weight, input->bias);  // (B, 64, Cp)
  } else {
    x = torch::gelu(Convolved(input, x));  // (B, 64, C)
  }
  x = RunBlocks(x, form);
  if (form == Form::kPlain) {
    x = out_ln->Plain(x.flatten(1));
    return planes ? planes->Run(x, form) : output->forward(x);
  }
  if (form == Form::kMixed && planes) {
    return MixedPlanes(x, {out_ln->weight, out_ln->bias, planes->weight, planes->bias},
                       inputs.size(0), out_ln->epsilon());
  }
  if (form == Form::kMixed) x = BoardsOfPieces(x, inputs.size(0), config.hidden_channels);
  x = IsFused(input) ? FusedFlatten(x, out_ln->weight, out_ln->bias, out_ln->epsilon())
                     : out_ln->Fast(ChannelByChannel::apply(x));
  if (planes) return planes->Run(x, form);
  const Tensor biases = output->bias.expand({x.size(0), -1});  // (B, M)
  return learn::AddProjected(biases, x, output->weight);
}

PolicyMlp::PolicyMlp(const NetConfig& config) : NetModule(config) {
  Numbered net = register_module("net", Numbered());
  int64_t width = kFlatInputs;
  for (int i = 0; i <= config.num_layers; ++i) {
    const int64_t next = i == config.num_layers ? config.num_moves : config.hidden_size;
    linears.push_back(net->register_module(std::to_string(2 * i), torch::nn::Linear(width, next)));
    width = next;
  }
}

Tensor PolicyMlp::Logits(const Tensor& inputs, Form) {
  Tensor x = inputs;
  for (size_t i = 0; i + 1 < linears.size(); ++i) x = torch::relu(linears[i]->forward(x));
  return linears.back()->forward(x);
}

PolicyNet MakeNet(const NetConfig& config) {
  CheckConfig(config);
  if (config.IsCnn()) return std::make_shared<PolicyCnn>(config);
  return std::make_shared<PolicyMlp>(config);
}

namespace {

// The weights of a network without attack planes as those of one that has them.
io::StateDict WithAttackPlanes(const io::StateDict& weights) {
  constexpr int64_t kBefore = InputForm{.flip = true}.channels();
  std::vector<io::NamedTensor> tensors = weights.tensors();
  for (auto& [name, tensor] : tensors) {
    if (name != "layers.0.weight" || tensor.shape.size() != 4 || tensor.shape[1] != kBefore) {
      continue;
    }
    const Tensor before = learn::FromFile(tensor);  // (C, I, K, K)
    tensor = learn::ToFile(torch::constant_pad_nd(before, {0, 0, 0, 0, 0, chess::kAttackPlanes}));
  }
  return {std::move(tensors), weights.place()};
}

// The weights with the network's blocks from `first` on. They add nothing to their input at first:
// the second convolution is zero, all else as the network has it.
io::StateDict WithBlocks(const io::StateDict& weights, const PolicyCnn& net, int first) {
  std::vector<io::NamedTensor> tensors = weights.tensors();
  for (size_t i = static_cast<size_t>(first); i < net.blocks.size(); ++i) {
    const std::string block = fmt::format("layers.{}.", i + 2);
    for (auto& [name, tensor] : learn::WeightsOf(*net.blocks[i])) {
      const bool last = name.starts_with("conv2.");
      tensors.push_back(
          {block + name,
           last ? learn::ToFile(torch::zeros_like(learn::FromFile(tensor))) : tensor});
    }
  }
  return {std::move(tensors), weights.place()};
}

}  // namespace

void LoadWeightsInto(NetModule& net, const std::string& path) {
  const io::ModelFile file = io::ReadModel(path);
  io::StateDict weights = file.weights;
  if (net.config.attack_planes) weights = WithAttackPlanes(weights);
  if (const auto* cnn = dynamic_cast<const PolicyCnn*>(&net)) {
    weights = WithBlocks(weights, *cnn, ConfigOf(file).num_layers);
  }
  learn::LoadWeights(net, weights, weights.place());
}

}  // namespace kibitz::policy
