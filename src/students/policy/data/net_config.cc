#include "students/policy/data/net_config.h"

#include <filesystem>

#include "base/config.h"
#include "base/error.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {

namespace fs = std::filesystem;

int NetConfig::Inputs() const { return IsCnn() ? 64 * ChannelsOf(flip_board) : kFlatInputs; }

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
  fields.AddChoice("norm", config.norm, "of a CNN",
                   {{"LayerNorm", NormKind::kLayerNorm}, {"RMSNorm", NormKind::kRmsNorm}});
  fields.Add("flip_board", config.flip_board, "a CNN sees the board from the side to move");
  fields.Add("hidden_size", config.hidden_size, "width of an MLP", {.min = 1, .max = 1 << 16});
  return fields;
}

void CheckConfig(const NetConfig& config) {
  if (config.IsCnn() && config.kernel_size % 2 == 0) {
    throw Error::Usage("model.kernel_size is {}, expected an odd number", config.kernel_size);
  }
  if (!config.IsCnn() && config.flip_board) {
    throw Error::Usage("model.flip_board is for PolicyCNN; an MLP sees White as White");
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
  const uint64_t first = (n(ChannelsOf(config.flip_board)) * window + 1) * width;
  return first + layers * 2 * ((width * window + 1) * width + norm) + norm +
         (64 * width + 1) * moves;
}

std::optional<NetConfig> ConfigOf(const std::string& weights) {
  NetConfig config;
  const fs::path folder =
      fs::is_directory(weights) ? fs::path(weights) : fs::path(weights).parent_path();
  const std::string path = (folder / "config.json").string();
  if (weights.ends_with(".pt")) {
    const io::Value root = io::ReadPt(weights);
    if (const io::Value* model = root.Find("config.model")) {
      FieldsOf(config).ReadTree(io::ToTree(*model), weights);
      return config;
    }
  }
  if (!fs::exists(path)) return std::nullopt;
  nlohmann::ordered_json tree = LoadConfig(path).tree;
  tree.erase("parameters");  // Shapes, for people.
  FieldsOf(config).ReadTree(tree, path);
  return config;
}

}  // namespace kibitz::policy
