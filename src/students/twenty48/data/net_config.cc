#include "students/twenty48/data/net_config.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "base/error.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"

namespace kibitz::twenty48 {

namespace fs = std::filesystem;

Fields FieldsOf(NetConfig& config) {
  Fields fields;
  fields.Add("input_vocab_size", config.input_vocab_size, "ranks with an embedding",
             {.min = 17, .max = 32});
  fields.Add("output_n_bins", config.output_n_bins,
             "bins of a binned head; follows from the binning", {.min = 1, .max = 4096});
  fields.Add("hidden_size", config.hidden_size, "width of the network", {.min = 1, .max = 16384});
  fields.Add("num_hidden_layers", config.num_hidden_layers, "transformer layers",
             {.min = 1, .max = 1000});
  fields.Add("num_attention_heads", config.num_attention_heads, "attention heads",
             {.min = 1, .max = 1024});
  fields.Add("num_key_value_heads", config.num_key_value_heads,
             "key and value heads; default: as many as attention heads", {.min = 1, .max = 1024});
  fields.Add("intermediate_size", config.intermediate_size, "hidden width of the MLP",
             {.min = 1, .max = 1 << 20});
  fields.Add("layer_norm_eps", config.layer_norm_eps, "epsilon of the RMSNorms",
             {.min = 0, .max = 1});
  fields.Add("max_position_embeddings", config.max_position_embeddings, "cells of the board",
             {.min = 16, .max = 16});
  fields.AddChoice(
      "head_type", config.head_type, "four heads over bins, or one over moves",
      {{"binned_ev", HeadType::kBinnedEv}, {"action_policy", HeadType::kActionPolicy}});
  fields.Add("canonical_view", config.canonical_view,
             "show the network each board in one of its eight symmetries");
  fields.Add("dropout_prob", config.dropout_prob,
             "kept for other programs; there is no dropout here", {.min = 0, .max = 1});
  fields.Add("attention_dropout_prob", config.attention_dropout_prob,
             "kept for other programs; there is no dropout here", {.min = 0, .max = 1});
  return fields;
}

void CheckConfig(const NetConfig& config) {
  if (config.head_type == HeadType::kBinnedEv && config.bins() == 0) {
    throw Error::Usage("model.output_n_bins is not set, but head_type is binned_ev");
  }
  if (config.hidden_size % config.num_attention_heads != 0) {
    throw Error::Usage("model.hidden_size is {}, expected a multiple of num_attention_heads, {}",
                       config.hidden_size, config.num_attention_heads);
  }
  if (config.num_attention_heads % config.kv_heads() != 0) {
    throw Error::Usage("model.num_key_value_heads is {}, expected a divisor of {}",
                       config.kv_heads(), config.num_attention_heads);
  }
}

int64_t AttentionFreeWidth(const NetConfig& config) {
  // What a row has beside one-hot rank and cell, halved; and no more than the values' width.
  return std::min((config.hidden_size - 17 - 16) / 2, config.kv_heads() * config.head_width());
}

void CheckAttentionFree(const NetConfig& config) {
  if (config.num_hidden_layers < 2 || config.intermediate_size < 17 * 16 ||
      AttentionFreeWidth(config) < 1) {
    throw Error::Usage(
        "attention off: the network has {} layers, intermediate_size {} and hidden_size {}; "
        "expected at "
        "least 2, 272 and 35",
        config.num_hidden_layers, config.intermediate_size, config.hidden_size);
  }
}

uint64_t CountParameters(const NetConfig& config) {
  const auto n = [](int value) { return static_cast<uint64_t>(value); };
  const uint64_t d = n(config.hidden_size);
  const uint64_t kv = n(config.kv_heads() * config.head_width());
  const uint64_t layer = 2 * d * d + 2 * d * kv + 3 * d * n(config.intermediate_size) + 2 * d;
  const uint64_t answers = config.head_type == HeadType::kBinnedEv ? 4 * n(config.bins()) : 4;
  return (n(config.input_vocab_size) + 16) * d + n(config.num_hidden_layers) * layer + d +
         answers * (d + 1);
}

namespace {

// The config that belongs to weights, with the place it was read from.
struct StoredConfig {
  nlohmann::ordered_json model;
  nlohmann::ordered_json binning;  // Null where there is none.
  std::string place;
};

std::optional<StoredConfig> ReadStored(const std::string& weights) {
  if (weights.ends_with(".pt")) {
    const io::Value root = io::ReadPt(weights);
    const io::Value* model = root.Find("config.model");
    if (model == nullptr) return std::nullopt;
    StoredConfig stored{.model = io::ToTree(*model), .binning = {}, .place = weights};
    if (const io::Value* binning = root.Find("config.binning")) {
      stored.binning = io::ToTree(*binning);
    }
    return stored;
  }
  const fs::path folder =
      fs::is_directory(weights) ? fs::path(weights) : fs::path(weights).parent_path();
  const std::string path = (folder / "config.json").string();
  if (!fs::exists(path)) return std::nullopt;
  StoredConfig stored{.model = LoadConfig(path).tree, .binning = {}, .place = path};
  if (stored.model.contains("binning")) {
    stored.binning = stored.model["binning"];
    stored.model.erase("binning");
  }
  return stored;
}

}  // namespace

std::optional<NetConfig> ConfigOf(const std::string& weights) {
  const std::optional<StoredConfig> stored = ReadStored(weights);
  if (!stored) return std::nullopt;
  NetConfig config;
  FieldsOf(config).ReadTree(stored->model, stored->place);
  return config;
}

std::optional<BinningOptions> BinningOf(const std::string& weights) {
  const std::optional<StoredConfig> stored = ReadStored(weights);
  if (!stored || stored->binning.is_null()) return std::nullopt;
  BinningOptions binning;
  FieldsOf(binning).ReadTree(stored->binning, stored->place + ", binning");
  return binning;
}

std::string ConfigText(NetConfig config, std::optional<BinningOptions> binning) {
  nlohmann::ordered_json tree = FieldsOf(config).ToTree();
  if (binning) tree["binning"] = FieldsOf(*binning).ToTree();
  return tree.dump(2) + "\n";
}

}  // namespace kibitz::twenty48
