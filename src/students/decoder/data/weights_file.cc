#include "students/decoder/data/weights_file.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "students/decoder/data/migrate.h"

namespace kibitz::decoder {
namespace {

NetConfig SizesOf(const io::StateDict& weights) {
  NetConfig config;
  config.num_heads = 0;
  config.num_layers = io::CountLayers(weights, "layers.{}.mlp.w1.weight");
  config.embed_dim = io::SizeFromShape(weights, "tok_embedding.weight", 1);
  config.d_ff = io::SizeFromShape(weights, "layers.0.mlp.w1.weight", 0);
  config.n_buckets = io::SizeFromShape(weights, "wl_bucket_centers", 0);
  config.value_hidden_size = io::SizeFromShape(weights, "wl_head.mlp.0.weight", 0);
  config.num_fourier_freq = io::SizeFromShape(weights, "fourier_encoder.frequencies", 1);
  return config;
}

}  // namespace

WeightsFile WeightsOf(const io::ModelFile& file, int num_heads) {
  Migration migration = MigrateStateDict(file.weights, file.place);
  for (const std::string& change : migration.changes) LogInfo("{}: {}", file.place, change);
  NetConfig config = SizesOf(migration.weights);
  file.ReadSection("model", FieldsOf(config));
  if (config.num_heads == 0) config.num_heads = num_heads;
  if (config.num_heads == 0) {
    throw Error(
        "{}: found no num_heads, which weights do not show, expected it in config.model; give "
        "--num-heads N, or convert the whole checkpoint with 'kibitz file convert'",
        file.place);
  }
  CheckConfig(config);
  const nlohmann::ordered_json* loss = file.Section("loss");
  const bool pretrained = loss != nullptr && loss->contains("move_weight");
  return {.weights = std::move(migration.weights), .config = config, .pretrained = pretrained};
}

WeightsFile ReadWeightsFile(const std::string& path, int num_heads) {
  return WeightsOf(io::ReadModel(path), num_heads);
}

}  // namespace kibitz::decoder
