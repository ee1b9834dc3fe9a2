#include "students/decoder/data/weights_file.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/weights/convert_weights.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#include "students/decoder/data/migrate.h"

namespace kibitz::decoder {
namespace {

io::Value ReadRoot(const std::string& path) {
  if (path.ends_with(".safetensors")) return io::Unflatten(io::ReadSafetensors(path), path);
  return io::ReadPt(path);
}

int SizeOf(const io::StateDict& weights, const std::string& name, size_t axis,
           const std::string& path) {
  const io::Tensor& tensor = weights.Get(name);
  if (tensor.shape.size() <= axis) {
    throw Error("{}: {} is {}, expected at least {} axes", path, name, io::ShapeText(tensor.shape),
                axis + 1);
  }
  return static_cast<int>(tensor.shape[axis]);
}

NetConfig ConfigOf(const io::StateDict& weights, std::optional<int> num_heads,
                   const std::string& path) {
  if (!num_heads) {
    throw Error(
        "{} has weights but no config, and the number of attention heads cannot be seen from them; "
        "give --num-heads N, or convert the whole checkpoint with 'kibitz file convert'",
        path);
  }
  const auto size = [&](const std::string& name, size_t axis) {
    return SizeOf(weights, name, axis, path);
  };
  NetConfig config;
  config.num_heads = *num_heads;
  config.embed_dim = size("tok_embedding.weight", 1);
  config.d_ff = size("layers.0.mlp.w1.weight", 0);
  config.n_buckets = size("wl_bucket_centers", 0);
  config.value_hidden_size = size("wl_head.mlp.0.weight", 0);
  config.num_fourier_freq = size("fourier_encoder.frequencies", 1);
  config.num_layers = 0;
  while (weights.Find(fmt::format("layers.{}.mlp.w1.weight", config.num_layers)) != nullptr) {
    ++config.num_layers;
  }
  return config;
}

}  // namespace

WeightsFile ReadWeightsFile(const std::string& path, std::optional<int> num_heads) {
  const io::Value root = ReadRoot(path);
  Migration migration = MigrateStateDict(io::StateDict::From(root, path), path);
  for (const std::string& change : migration.changes) LogInfo("{}: {}", path, change);
  NetConfig config;
  if (const io::Value* model = root.Find("config.model")) {
    FieldsOf(config).ReadTree(io::ToTree(*model), path);
  } else {
    config = ConfigOf(migration.weights, num_heads, path);
  }
  CheckConfig(config);
  const bool pretrained = root.Find("config.loss.move_weight") != nullptr;
  return {.weights = std::move(migration.weights), .config = config, .pretrained = pretrained};
}

}  // namespace kibitz::decoder
