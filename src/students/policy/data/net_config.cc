#include "students/policy/data/net_config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {

Fields FieldsOf(NetConfig& config) {
  Fields fields;
  fields.AddChoice("cls", config.cls, "kind of network",
                   {{"PolicyCNN", NetClass::kCnn}, {"PolicyMLP", NetClass::kMlp}});
  fields.Add("num_moves", config.num_moves, "size of the vocabulary; follows from the data",
             {.min = 1, .max = 1968});
  fields.Add("num_layers", config.num_layers, "residual blocks, or hidden layers of an MLP",
             {.min = 1, .max = 1000});
  fields.Add("hidden_channels", config.hidden_channels, "width of a CNN", {.min = 1, .max = 4096});
  fields.Add("kernel_size", config.kernel_size, "squares that a convolution looks at, along a side",
             {.min = 1, .max = 15});
  fields.AddChoice("norm", config.norm, "norm layers of a CNN",
                   {{"LayerNorm", NormKind::kLayerNorm}, {"RMSNorm", NormKind::kRmsNorm}});
  fields.AddChoice("head", config.head,
                   "last layer of a CNN: flat (the whole board to each move) or planes (a move "
                   "reads its two squares)",
                   {{"flat", HeadKind::kFlat}, {"planes", HeadKind::kPlanes}});
  fields.Add("flip_board", config.flip_board, "a CNN sees the board from the side to move");
  fields.Add("attack_planes", config.attack_planes,
             "a CNN that flips also sees attacked squares, pins, checks and flight squares");
  fields.Add("hidden_size", config.hidden_size, "width of an MLP", {.min = 1, .max = 1 << 16});
  return fields;
}

void CheckConfig(const NetConfig& config) {
  if (config.IsCnn() && config.kernel_size % 2 == 0) {
    throw Error::Usage("model.kernel_size is {}, expected an odd number", config.kernel_size);
  }
  if (config.HasPlanes() && config.num_moves != kFullVocabularySize) {
    throw Error::Usage("model.head planes needs all {} moves, and model.num_moves is {}",
                       kFullVocabularySize, config.num_moves);
  }
  if (!config.IsCnn() && config.flip_board) {
    throw Error::Usage("model.flip_board is for PolicyCNN; an MLP sees White as White");
  }
  if (config.attack_planes && !config.flip_board) {
    throw Error::Usage(
        "model.attack_planes is true and model.flip_board false; attack planes are from the side "
        "to move, set both");
  }
}

uint64_t CountParameters(const NetConfig& config) {
  const auto n = [](int value) { return static_cast<uint64_t>(value); };
  const uint64_t moves = n(config.num_moves);
  const uint64_t layers = n(config.num_layers);
  if (!config.IsCnn()) {
    const uint64_t width = n(config.hidden_size);
    return n(kFlatInputs + 1) * width + (layers - 1) * (width + 1) * width + (width + 1) * moves;
  }
  const uint64_t width = n(config.hidden_channels);
  const uint64_t window = n(config.kernel_size * config.kernel_size);
  const uint64_t norm = 64 * width * (config.norm == NormKind::kLayerNorm ? 2 : 1);
  const uint64_t first = (n(config.form().channels()) * window + 1) * width;
  const uint64_t head =
      config.HasPlanes() ? 2 * kMovePlanes * width + moves : (64 * width + 1) * moves;
  return first + layers * 2 * ((width * window + 1) * width + norm) + norm + head;
}

namespace {

void ReadCnnSizes(const io::StateDict& weights, NetConfig& config) {
  config.cls = NetClass::kCnn;
  config.hidden_channels = io::SizeFromShape(weights, "layers.0.weight", 0);
  const int inputs = io::SizeFromShape(weights, "layers.0.weight", 1);
  config.attack_planes = inputs == InputForm{.flip = true, .attacks = true}.channels();
  config.flip_board = config.attack_planes || inputs == InputForm{.flip = true}.channels();
  config.kernel_size = io::SizeFromShape(weights, "layers.0.weight", 2);
  config.num_layers = io::CountLayers(weights, "layers.{}.conv1.weight", 2);
  const bool bias = weights.Find("out_ln.bias") != nullptr;
  config.norm = bias ? NormKind::kLayerNorm : NormKind::kRmsNorm;
  config.num_moves = io::SizeFromShape(weights, "output.bias", 0);
  const bool planes = io::SizeFromShape(weights, "output.weight", 1) == config.hidden_channels;
  config.head = planes ? HeadKind::kPlanes : HeadKind::kFlat;
}

void ReadMlpSizes(const io::StateDict& weights, NetConfig& config) {
  config.cls = NetClass::kMlp;
  config.hidden_size = io::SizeFromShape(weights, "net.0.weight", 0);
  config.num_layers = 0;  // The activations between the linear layers have the odd numbers.
  const auto name = [](int layer) { return fmt::format("net.{}.weight", 2 * layer); };
  while (weights.Find(name(config.num_layers + 1)) != nullptr) ++config.num_layers;
  config.num_moves = io::SizeFromShape(weights, name(config.num_layers), 0);
}

}  // namespace

NetConfig ConfigOf(const io::ModelFile& file) {
  NetConfig config;
  if (file.weights.Find("net.0.weight") != nullptr) {
    ReadMlpSizes(file.weights, config);
  } else {
    ReadCnnSizes(file.weights, config);
  }
  file.ReadSection("model", FieldsOf(config));
  CheckConfig(config);
  return config;
}

}  // namespace kibitz::policy
