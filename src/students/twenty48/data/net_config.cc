#include "students/twenty48/data/net_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/data/tuples.h"

namespace kibitz::twenty48 {

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
  fields.Add("tuple_width", config.tuple_width,
             "numbers of the learned vector of each row, column and square; 0: tokens are tiles",
             {.min = 0, .max = 64});
  fields.AddChoice(
      "head_type", config.head_type, "four heads over bins, or one over moves",
      {{"binned_ev", HeadType::kBinnedEv}, {"action_policy", HeadType::kActionPolicy}});
  fields.Add("canonical_view", config.canonical_view,
             "show the network each board in one of its eight symmetries");
  fields.Add("dropout_prob", config.dropout_prob,
             "saved for other programs; this network has no dropout", {.min = 0, .max = 1});
  fields.Add("attention_dropout_prob", config.attention_dropout_prob,
             "saved for other programs; this network has no dropout", {.min = 0, .max = 1});
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
  const uint64_t e = n(config.tuple_width);
  const uint64_t input = e == 0 ? (n(config.input_vocab_size) + 16) * d
                                : n(kTuples) * (uint64_t{kTupleEntries} + 2 * d) * e +
                                      (16 * n(config.input_vocab_size) + n(kTupleRows - 1)) * d;
  return input + n(config.num_hidden_layers) * layer + d + answers * (d + 1);
}

namespace {

void SetLayersAndHead(const io::StateDict& weights, NetConfig& config) {
  config.num_hidden_layers = io::CountLayers(weights, "blocks.{}.mlp.w_gate.weight");
  config.intermediate_size = io::SizeFromShape(weights, "blocks.0.mlp.w_gate.weight", 0);
  if (weights.Find("policy_head.weight") != nullptr) {
    config.head_type = HeadType::kActionPolicy;
  } else {
    config.output_n_bins = io::SizeFromShape(weights, "ev_heads.0.weight", 0);
  }
}

NetConfig EncoderSizes(const io::StateDict& weights) {
  NetConfig config;
  config.input_vocab_size = io::SizeFromShape(weights, "tok_emb.weight", 0);
  config.hidden_size = io::SizeFromShape(weights, "tok_emb.weight", 1);
  config.max_position_embeddings = io::SizeFromShape(weights, "pos_emb.pos_emb.weight", 0);
  SetLayersAndHead(weights, config);
  return config;
}

// The heads are in no shape.
NetConfig TupleSizes(const io::StateDict& weights) {
  NetConfig config;
  config.tuple_width = io::SizeFromShape(weights, "tuples.weight", 1);
  config.hidden_size = io::SizeFromShape(weights, "tiles.weight", 1);
  SetLayersAndHead(weights, config);
  return config;
}

// The encoder that the network without attention is written into has one layer more. Its width and
// heads are in no shape.
NetConfig AttentionFreeSizes(const io::StateDict& weights) {
  NetConfig config;
  config.hidden_size = 0;
  config.num_hidden_layers = io::CountLayers(weights, "gates.{}.weight") + 1;
  if (config.num_hidden_layers > 1) {
    config.intermediate_size = io::SizeFromShape(weights, "gates.0.weight", 0);
  }
  const int answers = io::SizeFromShape(weights, "head.weight", 0);
  if (answers == 4) config.head_type = HeadType::kActionPolicy;
  config.output_n_bins = answers / 4;
  return config;
}

// Unset stays unset where every head has its own keys.
void SetKeyValueHeads(const io::StateDict& weights, NetConfig& config) {
  if (config.num_key_value_heads || config.hidden_size < config.num_attention_heads) return;
  const int heads = io::SizeFromShape(weights, "blocks.0.attn.wk.weight", 0) / config.head_width();
  if (heads != config.num_attention_heads) config.num_key_value_heads = heads;
}

void CheckFound(const io::ModelFile& file, const char* key, int value, const char* more) {
  if (value != 0) return;
  throw Error(
      "{}: found no {} (no weight's shape tells it), expected it in config.model or config.json; "
      "add it there{}",
      file.place, key, more);
}

}  // namespace

NetConfig ConfigOf(const io::ModelFile& file, int num_heads) {
  const bool tuples = IsTupleNet(file.weights);
  const bool attention = tuples ? HasAttention(file.weights) : !IsAttentionFree(file.weights);
  NetConfig config = tuples      ? TupleSizes(file.weights)
                     : attention ? EncoderSizes(file.weights)
                                 : AttentionFreeSizes(file.weights);
  config.num_attention_heads = 0;
  file.ReadSection("model", FieldsOf(config));
  if (config.num_attention_heads == 0) config.num_attention_heads = num_heads;
  CheckFound(file, "hidden_size", config.hidden_size, "");
  CheckFound(file, "num_attention_heads", config.num_attention_heads,
             ", or play with --num-heads N");
  if (attention) SetKeyValueHeads(file.weights, config);
  if (config.head_type == HeadType::kActionPolicy) config.output_n_bins.reset();
  CheckConfig(config);
  return config;
}

std::optional<BinningOptions> BinningOf(const io::ModelFile& file) {
  if (file.Section("binning") == nullptr) return std::nullopt;
  BinningOptions binning;
  file.ReadSection("binning", FieldsOf(binning));
  return binning;
}

nlohmann::ordered_json ConfigTree(NetConfig config, std::optional<BinningOptions> binning) {
  nlohmann::ordered_json tree = FieldsOf(config).ToTree();
  if (binning) tree["binning"] = FieldsOf(*binning).ToTree();
  return tree;
}

}  // namespace kibitz::twenty48
